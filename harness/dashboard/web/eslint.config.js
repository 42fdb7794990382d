// Lint rules: typescript-eslint's strict set, the rules of hooks, no shadowing, and no type assertions in src/.
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist", "node_modules", "src/documents.d.ts", "scripts", "tests/e2e/benchmark.mjs"] },
  {
    files: ["src/**/*.{ts,tsx}", "tests/**/*.ts"],
    extends: [tseslint.configs.strict],
    languageOptions: {
      globals: { document: "readonly", window: "readonly", location: "readonly", history: "readonly" },
    },
    plugins: { "react-hooks": hooks },
    rules: {
      eqeqeq: "error",
      "no-shadow": "off",
      "@typescript-eslint/no-shadow": ["error", { builtinGlobals: true }],
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "max-lines": ["error", { max: 400, skipBlankLines: true, skipComments: true }],
      "max-lines-per-function": ["error", { max: 130, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: ["src/**/*.{ts,tsx}"],
    rules: {
      "@typescript-eslint/consistent-type-assertions": ["error", { assertionStyle: "never" }],
    },
  },
  {
    files: ["tests/**/*.ts"],
    rules: { "max-lines-per-function": "off" },
  },
);
