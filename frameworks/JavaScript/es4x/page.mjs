// Renders the fortunes page as UTF-8 in a Vert.x buffer.
import { Buffer } from '@vertx/core';
import { Eta } from 'eta/dist/core.js';

const PAGE_BYTES = 2048;

// By default, Eta's compiled templates concatenate strings. With this plugin, they append each part to the buffer.
const appendToBuffer = {
  processFnString: (code) =>
    code.replace('res: ""', 'res: it.buffer').replace(/__eta\.res\+=(.+);/g, '__eta.res.appendString($1);'),
};

const eta = new Eta({ plugins: [appendToBuffer] });
const template = eta.compile(String(vertx.fileSystem().readFileBlocking('views/fortunes.eta')));

/** Returns the page in a new buffer. */
export const fortunesPage = (fortunes) => eta.render(template, { fortunes, buffer: Buffer.buffer(PAGE_BYTES) });
