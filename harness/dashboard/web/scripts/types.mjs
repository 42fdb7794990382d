// Generate src/documents.d.ts from the Python models' JSON Schema, which is read from standard input:
//   python -m harness.dashboard.documents | node scripts/types.mjs > src/documents.d.ts
import { compile } from "json-schema-to-typescript";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const schema = JSON.parse(text);

// Remove the properties' titles, because each title would become a redundant type alias.
function removeTitles(node) {
  if (Array.isArray(node)) node.forEach(removeTitles);
  else if (node && typeof node === "object") {
    for (const [key, value] of Object.entries(node)) {
      if (key === "properties" && value && typeof value === "object")
        for (const property of Object.values(value)) delete property.title;
      removeTitles(value);
    }
  }
}
removeTitles(schema);
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
