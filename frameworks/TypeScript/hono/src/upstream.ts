// A client for the upstream of /fan-out.

async function value(url: string): Promise<number> {
  const response = await fetch(url);
  const number = Number(await response.text());
  if (!response.ok || !Number.isInteger(number)) throw new Error(`${url} responded with ${response.status}`);
  return number;
}

/** Makes the calls concurrently and returns the sum of their results. */
export async function sum(url: string, calls: number): Promise<number> {
  const values = await Promise.all(Array.from({ length: calls }, () => value(url)));
  return values.reduce((total, each) => total + each, 0);
}
