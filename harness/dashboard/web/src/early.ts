// The run that the address names is asked for before anything else of the page is made: it stands first in main.tsx.

const asked = new Map<string, Promise<Response>>();

const run = /^#\/run\/([^/?]+)/.exec(location.hash)?.[1];
if (run && !/^local(:|%3a)/i.test(run) && !document.getElementById("run-data")) {
  const answer = fetch(`api/runs/${run}`);
  answer.catch(() => undefined); // whoever takes it says what is wrong
  asked.set(`api/runs/${run}`, answer);
}

/** The answer that is on its way from this address already; given once. */
export function early(url: string): Promise<Response> | undefined {
  const answer = asked.get(url);
  asked.delete(url);
  return answer;
}
