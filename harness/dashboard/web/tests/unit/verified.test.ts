import { expect, test } from "vitest";
import { verifiedText } from "../../src/parts/verified";

const row = (checks: number, responses_checked: number) => ({ checks, responses_checked });

test("verification counts are shown per row and for all rows", () => {
  expect(verifiedText([row(13, 170_000)])).toBe("13 checks, 170,000 responses under load");
  expect(verifiedText([row(13, 170_000), row(13, 30_000)])).toBe("13 checks each, 200,000 responses under load");
  expect(verifiedText([row(11, 1), row(13, 0)])).toBe("11 to 13 checks each, 1 response under load");
});

test("unknown counts are omitted", () => {
  expect(verifiedText([row(0, 631)])).toBe("631 responses under load");
  expect(verifiedText([row(0, 0)])).toBe("");
  expect(verifiedText([])).toBe("");
});
