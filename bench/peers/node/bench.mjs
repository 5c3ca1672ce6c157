/* What Node.js users take: redlock and rate-limiter-flexible, on ioredis. Its arguments say what to do; it says when it
 * begins and ends to measure, and what came of it (bench/load/subjects/peer.h). */
import { createRequire } from "node:module";
import Redis from "ioredis";
import Redlock from "redlock";
import { RateLimiterRedis } from "rate-limiter-flexible";

const [subject, scenario, ...rest] = process.argv.slice(2);

function versions() {
  const read = createRequire(import.meta.url);
  const names = subject === "redlock" ? ["redlock", "ioredis"] : ["rate-limiter-flexible", "ioredis"];
  return names.map(name => `${name} ${read(`./node_modules/${name}/package.json`).version}`).join(", ") + `, node ${process.version}`;
}

if (scenario === "--version") {
  console.log(versions());
  process.exit(0);
}

const [concurrency, keys, warmUp, seconds] = rest.slice(0, 4).map(Number);
const servers = rest.slice(4).map(url => (url.startsWith("unix://") ? new Redis(url.slice(7)) : new Redis(url)));

/* One operation, for each scenario. */
const redlock = new Redlock(servers, { retryCount: 0, automaticExtensionThreshold: 500 });
const limiter = new RateLimiterRedis({ storeClient: servers[0], points: 1e9, duration: 1, keyPrefix: "node" });
let turn = 0;
const operations = {
  async redlock(number) {
    const lock = await redlock.acquire([`lock-${number}`], 60000);
    await lock.release();
  },
  async limiter() {
    await limiter.consume(String(turn++ % keys));
  },
};

const WARM = 5; // operations of each runner, and the given number of seconds, before anything is measured
let phase = "warming", done = 0, warm = 0;
const latencies = new Map();

async function run(number) {
  const operation = operations[subject];
  for (let ended = 1; phase !== "over"; ended++) {
    const began = process.hrtime.bigint();
    await operation(number);
    if (ended === WARM) warm++;
    if (phase !== "measuring") continue;
    const us = Math.round(Number(process.hrtime.bigint() - began) / 1e3);
    latencies.set(us, (latencies.get(us) ?? 0) + 1);
    done++;
  }
}

const sleep = s => new Promise(resolve => setTimeout(resolve, s * 1e3));
const runners = Array.from({ length: concurrency }, (_, number) => run(number));
await sleep(warmUp);
while (warm < concurrency) await sleep(0.01);
console.log("begin");
phase = "measuring";
const began = process.hrtime.bigint();
await sleep(seconds);
const elapsed = Number(process.hrtime.bigint() - began) / 1e9;
phase = "over";
console.log("end");
await Promise.all(runners);
console.log(`${done} ${elapsed}`);
for (const [us, times] of latencies) console.log(`${us} ${times}`);
for (const server of servers) server.disconnect();
