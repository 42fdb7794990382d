import { expect, test } from "vitest";
import { verifiedText } from "../../src/parts/verified";

const row = (checks: number, responses_checked: number) => ({ checks, responses_checked });

test("the amount of verification is stated for one row and for all", () => {
  expect(verifiedText([row(13, 170_000)])).toBe("13 checks, 170,000 responses under load");
  expect(verifiedText([row(13, 170_000), row(13, 30_000)])).toBe("13 checks each, 200,000 responses under load");
  expect(verifiedText([row(11, 1), row(13, 0)])).toBe("11 to 13 checks each, 1 response under load");
});

test("unknown amounts are not stated", () => {
  expect(verifiedText([row(0, 631)])).toBe("631 responses under load");
  expect(verifiedText([row(0, 0)])).toBe("");
  expect(verifiedText([])).toBe("");
});
