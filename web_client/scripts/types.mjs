// Writes src/protocol/messages.ts from src/protocol/schema.json; with --check only compares.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const schemaFile = new URL("../src/protocol/schema.json", import.meta.url);
const typesFile = new URL("../src/protocol/messages.ts", import.meta.url);

const schema = JSON.parse(await readFile(schemaFile, "utf8"));
// The compiler knows draft-07's word for it.
const compiled = await compile(
  JSON.parse(
    JSON.stringify({ ...schema, definitions: schema.$defs, $defs: undefined }).replaceAll(
      "#/$defs/",
      "#/definitions/",
    ),
  ),
  "Protocol",
  {
    bannerComment:
      "/* Generated from schema.json by `npm run types` (`make types` renews both). Do not edit. */",
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    style: { printWidth: 100 },
  },
);
// What the compiler says of every type is noise, and the document itself is no message.
const said = /^ *\* This interface was referenced by `\w+`'s JSON-Schema.*\n *\* via the `\w+` ".*"\.\n/gm;
const text = compiled
  .replaceAll(said, "")
  .replaceAll(/^ *\/\*\*\n( *\*\n)? *\*\/\n/gm, "")
  .replaceAll(/^ *\*\n(?= *\*\/)/gm, "")
  .replace(/\n\/\*\*\n \* Written by[^/]*\*\/\nexport interface Protocol \{\n[^}]*\}\n/, "\n");

if (process.argv.includes("--check")) {
  const committed = await readFile(typesFile, "utf8").catch(() => "");
  if (committed !== text) {
    console.error("src/protocol/messages.ts differs from schema.json: run `npm run types`");
    process.exit(1);
  }
} else {
  await writeFile(typesFile, text);
}
