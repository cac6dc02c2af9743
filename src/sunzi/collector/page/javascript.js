// The client program in JavaScript, a module for pages and for Node, with the client of clients/javascript.

import { BASE } from "./asking.js";
import { javascriptLiteral } from "./literals.js";

function lines(offer, example) {
  const collection = javascriptLiteral(new URL(`v1/collections/${offer.collection}`, BASE).href);
  const epsilon = javascriptLiteral(offer.plan.epsilon);
  const needsSubsets = ["ss", "mss"].includes(offer.plan.protocol);
  const needsLabels = "labels_sha256" in offer.plan.domain;
  const needs = [needsSubsets && "designs: [subsets]", needsLabels && "labelFile"].filter(Boolean);
  const options = needs.length ? `, { ${needs.join(", ")} }` : "";
  return [
    ["", "npm install PATH/TO/clients/javascript"],
    ["import { Client, fetchEpoch } from \"sunzi\";"],
    ...(needsSubsets ? [["import { subsets } from \"sunzi/subsets\";"]] : []),
    [""],
    [`const collection = ${collection};`],
    ...(needsLabels
      ? [["const labelFile = await (await fetch(\"labels.txt\")).text();", "the label file of this plan"]]
      : []),
    [`const epoch = await fetchEpoch(collection${options});`],
    [`const client = new Client(epoch.plan, { maxEpsilon: ${epsilon} });`, "refuses a larger epsilon"],
    [""],
    [`const report = client.report(${example});`, "randomised here"],
    ["const outcome = await client.send(epoch.url, report);", "the same id if it is sent again"],
    ["console.log(outcome);"],
  ];
}

export const javascript = { name: "JavaScript", comment: "//", literal: javascriptLiteral, lines };
