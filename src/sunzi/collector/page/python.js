// The client program in Python.

import { BASE } from "./asking.js";
import { pythonLiteral } from "./literals.js";

function lines(offer, example) {
  const server = BASE.href.replace(/\/$/, "");
  const plan = "labels_sha256" in offer.plan.domain
    ? [
      ["with open(\"plan.json\", \"w\") as file:"],
      ["    json.dump(offer[\"plan\"], file)"],
      ["plan = sunzi.load_plan(\"plan.json\", labels=\"labels.txt\")", "the label file of this plan"],
    ]
    : [["plan = sunzi.Plan.from_json(json.dumps(offer[\"plan\"]))"]];
  return [
    ["", "pip install sunzi"],
    ["import json, secrets, urllib.request"],
    ["import sunzi"],
    [""],
    [`server = ${pythonLiteral(server)}`],
    [`collection = f"{server}/v1/collections/${offer.collection}"`],
    ["with urllib.request.urlopen(f\"{collection}/plan\") as answer:"],
    ["    offer = json.load(answer)"],
    ...plan,
    [`client = plan.client(max_epsilon=${pythonLiteral(offer.plan.epsilon)})`, "refuses a larger epsilon"],
    [""],
    [`report = client.report(${example})`, "randomised here"],
    ["identity = secrets.token_hex(16)", "the same if it is sent again"],
    ["query = f\"id={identity}&plan={offer['fingerprint']}\""],
    ["address = f\"{server}{offer['upload']}/reports?{query}\""],
    ["request = urllib.request.Request(address, data=report)"],
    ["with urllib.request.urlopen(request) as answer:"],
    ["    print(answer.read().decode())"],
  ];
}

export const python = { name: "Python", comment: "#", literal: pythonLiteral, lines };
