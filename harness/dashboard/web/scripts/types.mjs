// Writes src/documents.d.ts from the JSON Schema of the Python models, read from standard input:
//   python -m harness.dashboard.documents | node scripts/types.mjs > src/documents.d.ts
import { compile } from "json-schema-to-typescript";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const schema = JSON.parse(text);

// A property's title only repeats its name; without it no alias type is made of each property.
function untitle(node) {
  if (Array.isArray(node)) node.forEach(untitle);
  else if (node && typeof node === "object") {
    for (const [key, value] of Object.entries(node)) {
      if (key === "properties" && value && typeof value === "object")
        for (const property of Object.values(value)) delete property.title;
      untitle(value);
    }
  }
}
untitle(schema);
for (const definition of Object.values(schema.$defs)) {
  delete definition.title;
  if (definition.type === "object") definition.additionalProperties ??= false;
}

process.stdout.write(
  await compile(schema, "Documents", {
    bannerComment: "// Generated from the Python models by scripts/types.mjs: `npm run types`. Do not edit.",
    format: true,
    style: { printWidth: 120 },
    additionalProperties: false,
  }),
);
