// Renders the fortunes page.
import { Eta } from 'eta/dist/core.js';

const eta = new Eta();
const template = eta.compile(String(vertx.fileSystem().readFileBlocking('views/fortunes.eta')));

/** Returns the page as a string. */
export const fortunesPage = (fortunes) => eta.render(template, { fortunes });
