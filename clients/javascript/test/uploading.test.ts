/** Sending to a collector: always the same id and body until it responds. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";

import { MemoryStore } from "../src/device.js";
import { Client, fetchEpoch, StoreError } from "../src/index.js";
import { expectRejection, hexOf, load, openDevice, split } from "./support.js";

const { plan, fingerprint } = load("grr_k5");
const ENVELOPE = {
  collection: "default",
  epoch: 7,
  open: true,
  upload: "/v1/collections/default/epochs/7",
  fingerprint,
  plan,
};

const REFUSAL = '{"error":"ClosedEpochError","message":"epoch 1 is closed"}';

afterEach(() => vi.unstubAllGlobals());

/** Mock fetch with these responses in turn, repeating the last; returns the requests. */
function answers(...responses: (Response | Error)[]): { url: string; method: string; body: unknown; headers: any }[] {
  const asked: { url: string; method: string; body: unknown; headers: any }[] = [];
  vi.stubGlobal("fetch", async (url: string, { method = "GET", body, headers }: RequestInit = {}) => {
    asked.push({ url, method, body, headers });
    const next = responses.length > 1 ? responses.shift()! : responses[0];
    if (next instanceof Error) throw next;
    const copy = next.clone();
    Object.defineProperty(copy, "url", { value: url });
    return copy;
  });
  return asked;
}

const envelope = (change = {}): Response => new Response(JSON.stringify({ ...ENVELOPE, ...change }));
const counted = (outcome = "counted"): Response => new Response(JSON.stringify({ outcome, reports: 1 }));

test("fetchEpoch returns the open epoch with a checked plan", async () => {
  for (const url of ["https://c.example", "https://c.example/", "https://c.example/v1/collections/default/"]) {
    const asked = answers(envelope());
    const epoch = await fetchEpoch(url);
    expect(asked[0].url).toBe("https://c.example/v1/collections/default/plan");
    expect([epoch.number, epoch.isOpen, epoch.plan.fingerprint]).toEqual([7, true, fingerprint]);
    expect(epoch.url).toBe("https://c.example/v1/collections/default/epochs/7");
  }
  answers(envelope());
  expect((await fetchEpoch("https://c.example/base/v1/collections/other")).url).toBe(
    "https://c.example/base/v1/collections/other/epochs/7",
  );
});

test("fetchEpoch rejects wrong responses", async () => {
  answers(envelope({ fingerprint: "0".repeat(64) }));
  await expectRejection("PlanError", fetchEpoch("https://c.example"));
  answers(envelope({ plan: { ...plan, epsilon: "1/2" } }));
  await expectRejection("PrivacyError", fetchEpoch("https://c.example"));
  answers(new Response("gone", { status: 404 }));
  await expectRejection("StoreError", fetchEpoch("https://c.example"));
  answers(new TypeError("offline"));
  await expectRejection("StoreError", fetchEpoch("https://c.example"));
});

test("a report is sent to its epoch with the plan's fingerprint and an id", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const report = client.report(3);
  const asked = answers(counted());
  expect(
    await client.send("https://c.example/v1/collections/default/epochs/7", report, { secret: "s3cret", token: "cd".repeat(32) }),
  ).toBe("counted");
  const { url, method, body, headers } = asked[0];
  const address = new URL(url);
  expect([method, address.pathname]).toEqual(["POST", "/v1/collections/default/epochs/7/reports"]);
  expect(address.search).toBe(`?plan=${fingerprint}`);
  const [line, content] = split(body);
  expect(line).toMatch(/^[0-9a-f]{32} (cd){32}$/);
  expect(content).toEqual(report);
  expect(headers).toEqual({ Authorization: "Bearer s3cret" });
});

test("groups travel in the first line, after the token", async () => {
  const client = new Client({ ...plan, groups: { country: ["DE", "FR"], release: ["1"] } }, { maxEpsilon: 32 });
  const epoch = "https://c.example/v1/collections/default/epochs/7";
  const asked = answers(counted(), counted());
  await client.send(epoch, client.report(3), { token: "cd".repeat(32), groups: { release: "1", country: "DE" } });
  await client.send(epoch, client.reportBatch([1, 2]), { groups: {} });
  expect(split(asked[0].body)[0]).toMatch(/^[0-9a-f]{32} (cd){32} country=DE,release=1$/);
  expect(split(asked[1].body)[0]).toMatch(/^[0-9a-f]{32}$/);
});

test("a batch is sent to the batches of the current epoch if only the collector is given", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const asked = answers(envelope(), counted("repeated"));
  expect(await client.send("https://c.example", client.reportBatch([1, 2, 3]), { id: "ab".repeat(16) })).toBe(
    "repeated",
  );
  expect(asked[1].url).toBe("https://c.example/v1/collections/default/epochs/7/batches");
  expect(split(asked[1].body)[0]).toBe("ab".repeat(16));
  answers(envelope({ fingerprint: "1".repeat(64) }));
  await expectRejection("PlanError", client.send("https://c.example", client.report(1)));
});

test("a body goes to the epoch that it was first sent to", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const asked = answers(envelope(), new TypeError("the receipt was lost"), envelope({ epoch: 8 }), counted("repeated"));
  const report = client.report(3);
  await expectRejection("StoreError", client.send("https://c.example", report, { patience: 0 }));
  asked.length = 0;
  answers(counted("repeated"));
  expect(await client.send("https://c.example", report)).toBe("repeated");
  const later = answers(envelope({ epoch: 8 }), counted());
  expect(await client.send("https://c.example", client.report(3))).toBe("counted");
  expect(await client.send("https://c.example", report)).toBe("counted");
  expect(later.slice(1).map(({ url }) => new URL(url).pathname)).toEqual([
    "/v1/collections/default/epochs/8/reports",
    "/v1/collections/default/epochs/7/reports",
  ]);
});

test("send keeps trying while the plan cannot be fetched", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const asked = answers(
    new TypeError("reset"),
    new Response("busy", { status: 503 }),
    new Response("<html>Welcome to our hotel"),
    envelope(),
    counted(),
  );
  expect(await client.send("https://c.example", client.report(1))).toBe("counted");
  expect(asked).toHaveLength(5);
});

test("retries send the same bytes under the same id", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const asked = answers(
    new TypeError("reset"),
    new Response("busy", { status: 503 }),
    new Response("a proxy is confused", { status: 520 }),
    new Response("<html>"),
    counted(),
  );
  expect(await client.send("https://c.example/epochs/1", client.report(1), { patience: 30 })).toBe("counted");
  expect(asked).toHaveLength(5);
  expect(new Set(asked.map(({ url }) => url)).size).toBe(1);
  expect(new Set(asked.map(({ body }) => hexOf(body as Uint8Array))).size).toBe(1);
});

test("a report keeps its id when it is sent again after patience ran out", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  await expectRejection("ParameterError", client.send("https://c.example/epochs/1"));
  for (const make of [() => client.report(1), () => client.reportBackground(), () => client.reportBatch([1, 2])]) {
    const made = make();
    const asked = answers(new TypeError("offline"));
    await expectRejection("StoreError", client.send("https://c.example/epochs/1", made, { patience: 0 }));
    const later = answers(counted("repeated"));
    expect(await client.send("https://c.example/epochs/1")).toBe("repeated");
    expect(later).toEqual(asked);
    expect(split(later[0].body)[1]).toEqual(made);
  }
  // Two reports with the same bytes have different ids.
  const [one, two] = [Uint8Array.of(3), Uint8Array.of(3)];
  const asked = answers(counted());
  for (const report of [one, two, one]) await client.send("https://c.example/epochs/1", report);
  expect(asked[0].body).toEqual(asked[2].body);
  expect(asked[0].body).not.toEqual(asked[1].body);
});

test("patience ends, and a rejection is final", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  answers(new Response("busy", { status: 429, headers: { "Retry-After": "30" } }));
  await expectRejection("StoreError", client.send("https://c.example/epochs/1", client.report(1), { patience: 1 }));
  for (const status of [400, 403, 404, 409, 410, 413, 422]) {
    const asked = answers(new Response(REFUSAL, { status }));
    await expectRejection("ReportError", client.send("https://c.example/epochs/1", client.report(1)));
    expect(asked).toHaveLength(1);
  }
});

test("only a collector's own rejection is final, and 401 is not", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const portal = "<html>Welcome to our hotel";
  const answered: [number, string][] = [
    [200, portal],
    [200, REFUSAL],
    [302, REFUSAL],
    [403, portal],
    [404, '{"error":"no route"}'],
    [405, REFUSAL],
    [410, `[${REFUSAL}]`],
    [421, REFUSAL],
    [425, REFUSAL],
    [500, REFUSAL],
  ];
  for (const [status, text] of answered) {
    answers(new Response(text, { status }));
    await expectRejection("StoreError", client.send("https://c.example/epochs/1", client.report(1), { patience: 0 }));
  }
  const asked = answers(new Response(REFUSAL, { status: 401 }));
  await expectRejection("StoreError", client.send("https://c.example/epochs/1", client.report(1)));
  expect(asked).toHaveLength(1);
});

test("receipts and rejections are JSON in any layout", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  for (const text of ['{ "outcome": "counted" }', '{"reports":1,"outcome":"counted"}\n', '\n{\n  "outcome" : "counted"\n}']) {
    answers(new Response(text));
    expect(await client.send("https://c.example/epochs/1", client.report(1), { patience: 0 })).toBe("counted");
  }
  for (const text of ['{ "error": "ClosedEpochError", "message": "closed" }', '{"message":"closed","error":"no"}']) {
    answers(new Response(text, { status: 410 }));
    await expectRejection("ReportError", client.send("https://c.example/epochs/1", client.report(1)));
  }
  for (const text of ["null", '"counted"', '["counted"]', '{"outcome":"lost"}', '{"outcome":["counted"]}', ""]) {
    for (const status of [200, 410]) {
      answers(new Response(text, { status }));
      const sent = client.send("https://c.example/epochs/1", client.report(1), { patience: 0 });
      await expectRejection("StoreError", sent);
    }
  }
});

test("errors keep their cause: the failure or the response", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const offline = new TypeError("offline");
  answers(offline);
  for (const call of [
    () => fetchEpoch("https://c.example"),
    () => client.send("https://c.example/epochs/1", client.report(1), { patience: 0 }),
  ]) {
    const error: Error = await call().then(() => undefined as never, (reason) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect(error.cause).toBe(offline);
  }
  answers(new Response(REFUSAL, { status: 410 }));
  const error: Error = await client.send("https://c.example/epochs/1", client.report(1)).then(
    () => undefined as never,
    (reason) => reason,
  );
  expect([error.name, (error.cause as Response).status]).toEqual(["ReportError", 410]);
  answers(new Response("gone", { status: 404 }));
  await expect(fetchEpoch("https://c.example")).rejects.toMatchObject({ name: "StoreError", cause: { status: 404 } });
});

test("errors quote the collector's own message, cut and without control characters, and nothing else", async () => {
  const client = new Client(plan, { maxEpsilon: 32 });
  const said = async (answer: Response): Promise<string> => {
    answers(answer);
    const sent = client.send("https://c.example/epochs/1", client.report(1), { patience: 0 });
    return sent.then(() => "", ({ message }: Error) => message);
  };
  const secret = "s3cret";
  expect(await said(new Response(REFUSAL, { status: 410 }))).toBe("the collector returned 410: epoch 1 is closed");
  for (const text of [secret, `<html>${secret}`, `{"error":"${secret}"}`, `{"message":["${secret}"]}`, `["${secret}"]`])
    expect(await said(new Response(text, { status: 503 }))).toBe("the collector returned 503");
  const message = `line 1\n\u001b[31mline 2\u202e ${"x".repeat(1000)}`;
  const long = await said(new Response(JSON.stringify({ error: secret, message, more: secret }), { status: 400 }));
  expect(long).toMatch(/^the collector returned 400: line 1 \[31mline 2 +x+$/);
  expect(long.length).toBeLessThan(250);
  for (const text of [`<html>${secret}`, `{"epoch":"${secret}"}`, `{"epoch":1e5,"plan":"${secret}"}`]) {
    answers(new Response(text));
    const error: Error = await fetchEpoch("https://c.example").then(() => undefined as never, (reason) => reason);
    expect([error.name, error.message]).toEqual(["StoreError", "the collector returned 200"]);
  }
  answers(envelope({ fingerprint: `${secret}${"\n".repeat(500)}` }));
  const error: Error = await fetchEpoch("https://c.example").then(() => undefined as never, (reason) => reason);
  expect(error.message).toMatch(/^the collector has plan "[^\n]{1,60}…, not [0-9a-f]{64}$/);
});

describe("redirects and caches", () => {
  /** Run with a real server that redirects to another one, which says that it counted; returns what that one got. */
  async function redirected(status: number, use: (address: string) => Promise<void>): Promise<string[]> {
    const reached: string[] = [];
    const listen = async (server: Server): Promise<string> => {
      await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    };
    const target = createServer((request, response) => {
      reached.push(`${request.method} ${request.url}`);
      response.end(JSON.stringify({ outcome: "counted", reports: 1, ...ENVELOPE }));
    });
    const elsewhere = await listen(target);
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { Location: `${elsewhere}${request.url}` }).end(REFUSAL);
    });
    try {
      await use(await listen(server));
    } finally {
      for (const each of [server, target]) {
        each.close();
        each.closeAllConnections();
      }
    }
    return reached;
  }

  test.each([301, 302, 303, 307, 308])("%d is not followed, and the report is kept", async (status) => {
    const client = new Client(plan, { maxEpsilon: 32 });
    const store = new MemoryStore();
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
    const reached = await redirected(status, async (address) => {
      const epoch = `${address}/v1/collections/default/epochs/7`;
      await expectRejection("StoreError", fetchEpoch(address));
      await expectRejection("StoreError", client.send(epoch, client.report(3), { patience: 0 }));
      await device.queue(plan, "browser", 3, epoch);
      expect(await device.flush()).toEqual({ acknowledged: 0, rejected: 0, waiting: 1 });
      expect(device.handOver()).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 50));
    });
    expect(reached).toEqual([]);
    expect(await device.waiting()).toHaveLength(1);
  });

  test("every request refuses redirects and caches", async () => {
    const modes: unknown[] = [];
    vi.stubGlobal("fetch", async (url: string, { redirect, cache }: RequestInit) => {
      modes.push([redirect, cache]);
      const answer = url.endsWith("/plan") ? envelope() : counted();
      Object.defineProperty(answer, "url", { value: url });
      return answer;
    });
    const client = new Client(plan, { maxEpsilon: 32 });
    await fetchEpoch("https://c.example");
    await client.send("https://c.example", client.report(1));
    expect(modes).toEqual(Array(3).fill(["error", "no-store"]));
  });
});

describe("an AbortSignal", () => {
  /** A fetch that is answered by nobody. */
  const silence = (): void =>
    void vi.stubGlobal(
      "fetch",
      (_url: string, { signal }: RequestInit) =>
        new Promise((_resolve, reject) => {
          if (signal?.aborted) reject(signal.reason);
          signal?.addEventListener("abort", () => reject(signal.reason));
        }),
    );

  test("stops a request, with its reason", async () => {
    silence();
    const client = new Client(plan, { maxEpsilon: 32 });
    const report = client.report(1);
    for (const isEarly of [true, false]) {
      for (const call of [
        (signal: AbortSignal) => fetchEpoch("https://c.example", { signal }),
        (signal: AbortSignal) => client.send("https://c.example", report, { signal }),
        (signal: AbortSignal) => client.send("https://c.example/epochs/1", report, { signal }),
      ]) {
        const controller = new AbortController();
        if (isEarly) controller.abort();
        const called = call(controller.signal);
        controller.abort();
        await expect(called).rejects.toBe(controller.signal.reason);
      }
    }
    const reason = new Error("the user left");
    await expect(fetchEpoch("https://c.example", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test("stops the pause between attempts, and the report can be sent later", async () => {
    vi.useFakeTimers();
    try {
      const client = new Client(plan, { maxEpsilon: 32 });
      const asked = answers(new Response("busy", { status: 503, headers: { "Retry-After": "30" } }), counted());
      const controller = new AbortController();
      const sent = client.send("https://c.example/epochs/1", client.report(1), { signal: controller.signal });
      const settled = expect(sent).rejects.toBe("enough");
      await vi.advanceTimersByTimeAsync(5000);
      controller.abort("enough");
      await settled;
      expect([asked.length, vi.getTimerCount()]).toEqual([1, 0]);
      expect(await client.send("https://c.example/epochs/1")).toBe("counted");
      expect(asked[0].body).toEqual(asked[1].body);
    } finally {
      vi.useRealTimers();
    }
  });

  test("keeps nothing when the request is over", async () => {
    const controller = new AbortController();
    const listeners = vi.spyOn(controller.signal, "removeEventListener");
    answers(envelope());
    await fetchEpoch("https://c.example", { signal: controller.signal });
    expect(listeners).toHaveBeenCalledTimes(1);
  });
});

test("a truncated response counts as none", async () => {
  const broken = new Response(REFUSAL, { status: 410 });
  const body = new ReadableStream({ pull: (controller) => controller.error(new TypeError("reset")) });
  Object.defineProperties(broken, { clone: { value: () => broken }, body: { value: body } });
  answers(broken);
  const client = new Client(plan, { maxEpsilon: 32 });
  await expectRejection("StoreError", client.send("https://c.example/epochs/1", client.report(1), { patience: 0 }));
});

describe("a hostile server", () => {
  const NESTED = "[".repeat(100_000);
  const wrong = [
    "null",
    "[]",
    '{"epoch":null}',
    '{"epoch":"1"}',
    '{"epoch":1e999}',
    '{"epoch":-1}',
    NESTED,
    `{"epoch":1,"plan":${NESTED}${"]".repeat(100_000)}}`,
    `{"epoch":${"9".repeat(1_000_000)}}`,
  ];

  test("gets a StoreError for every wrong answer, which does not repeat it whole", async () => {
    const client = new Client(plan, { maxEpsilon: 32 });
    for (const text of wrong) {
      for (const call of [
        () => fetchEpoch("https://c.example"),
        () => client.send("https://c.example", client.report(1), { patience: 0 }),
        () => client.send("https://c.example/epochs/1", client.report(1), { patience: 0 }),
      ]) {
        vi.stubGlobal("fetch", async () => new Response(text));
        const error = await call().catch((reason: Error) => reason);
        expect(error).toBeInstanceOf(StoreError);
        expect((error as Error).message.length).toBeLessThan(400);
      }
    }
  });

  test("cannot make the client wait long or read much", async () => {
    const client = new Client(plan, { maxEpsilon: 32 });
    for (const value of ["\u00b2", "1e999", "-1", "NaN"]) {
      const busy = new Response("", { status: 503 });
      Object.defineProperty(busy, "headers", { value: { get: () => value } });
      Object.defineProperty(busy, "clone", { value: () => busy });
      answers(busy);
      const sent = client.send("https://c.example/epochs/1", client.report(1), { patience: 0.2 });
      await expectRejection("StoreError", sent);
    }
    let pulled = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        pulled++;
        controller.enqueue(new Uint8Array(2 ** 20).fill(32));
      },
    });
    const flood = new Response(endless);
    Object.defineProperty(flood, "clone", { value: () => flood });
    answers(flood);
    await expectRejection("StoreError", fetchEpoch("https://c.example"));
    expect(pulled).toBeLessThan(40);
  });

  test("keeps patience against dripping bytes", async () => {
    const server = createServer((_request, response) => {
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = new Client(plan, { maxEpsilon: 32 });
    const sent = client.send(`http://127.0.0.1:${port}`, client.report(1), { patience: 0.5 });
    await expectRejection("StoreError", sent); // vitest ends the test after 5 seconds, one request may take 30
    server.close();
    server.closeAllConnections();
  });
});
