import { expect, test } from "vitest";
import type { Trial } from "../../src/documents";
import { describeWitness, trialName } from "../../src/load";

const trial = (facts: Partial<Trial>): Trial =>
  ({
    load: { kind: "closed", connections: 64, depth: 1, queries: null, close_after: null },
    process: 0,
    round: 0,
    purpose: "measure",
    generator: "loadgen",
    started_at: 1,
    cpu_per_request: 100e-6,
    validity: [],
    ...facts,
  }) as Trial;
const witness = (facts: Partial<Trial>): Trial =>
  trial({ purpose: "witness", generator: "wrk", started_at: 5, ...facts });

test("a trial is named by process and round", () => {
  expect(trialName(trial({ process: 1, round: 2 }))).toBe("P2 R3");
  expect(trialName(witness({}))).toBe("P1 R1, check by wrk");
});

test("a witness is compared with the trial before it", () => {
  const trials = [
    trial({ cpu_per_request: 50e-6 }),
    trial({ started_at: 3 }),
    trial({
      started_at: 4,
      load: { kind: "closed", connections: 256, depth: 1, queries: null, close_after: null },
      cpu_per_request: 1,
    }),
    trial({ started_at: 9, cpu_per_request: 1 }),
    witness({ cpu_per_request: 97.4e-6 }),
  ];
  expect(describeWitness(trials)).toBe("wrk, independent check: CPU per request agrees within 2.6 %");
});

test("a disagreeing witness is reported as such", () => {
  const flag = {
    name: "witness",
    outcome: "warn",
    value: 9,
    threshold: 3,
    flag: "the two generators disagree",
  } as const;
  const trials = [trial({}), witness({ cpu_per_request: 140e-6, validity: [flag] })];
  expect(describeWitness(trials)).toBe("wrk, independent check: CPU per request differs by 40 %");
  expect(describeWitness([trial({})])).toBeNull();
});
