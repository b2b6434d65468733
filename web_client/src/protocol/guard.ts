import schema from "./schema.json";

/** The part of JSON Schema that the wire models use. */
interface Node {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  oneOf?: readonly Node[];
  anyOf?: readonly Node[];
  discriminator?: { propertyName: string; mapping: Readonly<Record<string, string>> };
  properties?: Readonly<Record<string, Node>>;
  required?: readonly string[];
  additionalProperties?: boolean | Node;
  patternProperties?: Readonly<Record<string, Node>>;
  items?: Node;
  default?: unknown;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

const DEFINITIONS: Readonly<Record<string, Node>> = schema.$defs;

/** What was received is not what the schema says. The message names the place. */
export class NotInSchema extends Error {
  constructor(where: string, what: string) {
    super(`${where}: ${what}`);
    this.name = "NotInSchema";
  }
}

/**
 * Check a received value against a named definition of the schema.
 *
 * Fields that a newer server adds are ignored; fields that it left out get the schema's default.
 *
 * @returns a value of that type; @throws NotInSchema otherwise.
 */
export function checked(name: string, value: unknown): unknown {
  const node = DEFINITIONS[name];
  if (node === undefined) throw new NotInSchema(name, "is no definition of the schema");
  return check(node, value, name);
}

function resolve(node: Node): Node {
  if (node.$ref === undefined) return node;
  const target = DEFINITIONS[node.$ref.slice(node.$ref.lastIndexOf("/") + 1)];
  if (target === undefined) throw new NotInSchema(node.$ref, "is missing in the schema");
  return resolve(target);
}

function check(node: Node, value: unknown, where: string): unknown {
  if (node.$ref !== undefined) return check(resolve(node), value, where);
  if (node.discriminator !== undefined) return checkTagged(node.discriminator, value, where);
  const options = node.oneOf ?? node.anyOf;
  if (options !== undefined) return checkOptions(options, value, where);
  if (node.const !== undefined && value !== node.const) {
    throw new NotInSchema(where, `is not ${JSON.stringify(node.const)}`);
  }
  if (node.enum !== undefined && !node.enum.includes(value)) {
    throw new NotInSchema(where, "is none of the listed words");
  }
  switch (node.type) {
    case "object":
      return checkObject(node, value, where);
    case "array":
      if (!Array.isArray(value)) throw new NotInSchema(where, "is no list");
      between(value.length, node.minItems, node.maxItems, where, "has a wrong length");
      return value.map((item, index) => check(node.items ?? {}, item, `${where}[${index}]`));
    case "string":
      if (typeof value !== "string") throw new NotInSchema(where, "is no text");
      between(value.length, node.minLength, node.maxLength, where, "has a wrong length");
      if (node.pattern !== undefined && !new RegExp(node.pattern, "u").test(value)) {
        throw new NotInSchema(where, "has a wrong form");
      }
      return value;
    case "integer":
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) {
        throw new NotInSchema(where, "is no number");
      }
      if (node.type === "integer" && !Number.isInteger(value)) {
        throw new NotInSchema(where, "is no whole number");
      }
      between(value, node.minimum, node.maximum, where, "is out of range");
      if (value <= (node.exclusiveMinimum ?? -Infinity)) throw new NotInSchema(where, "is too small");
      if (value >= (node.exclusiveMaximum ?? Infinity)) throw new NotInSchema(where, "is too large");
      return value;
    case "boolean":
      if (typeof value !== "boolean") throw new NotInSchema(where, "is neither true nor false");
      return value;
    case "null":
      if (value !== null) throw new NotInSchema(where, "is not null");
      return value;
    default:
      return value;
  }
}

function between(
  size: number,
  least: number | undefined,
  most: number | undefined,
  where: string,
  what: string,
): void {
  if (size < (least ?? -Infinity) || size > (most ?? Infinity)) throw new NotInSchema(where, what);
}

function checkTagged(
  tag: NonNullable<Node["discriminator"]>,
  value: unknown,
  where: string,
): unknown {
  const word = isRecord(value) ? value[tag.propertyName] : undefined;
  const target = typeof word === "string" ? tag.mapping[word] : undefined;
  if (target === undefined) throw new NotInSchema(`${where}.${tag.propertyName}`, "is unknown");
  return check({ $ref: target }, value, where);
}

function checkOptions(options: readonly Node[], value: unknown, where: string): unknown {
  let fault: unknown;
  for (const option of options) {
    try {
      return check(option, value, where);
    } catch (error) {
      fault = error;
    }
  }
  throw fault instanceof NotInSchema ? fault : new NotInSchema(where, "fits no form");
}

function checkObject(node: Node, value: unknown, where: string): Record<string, unknown> {
  if (!isRecord(value)) throw new NotInSchema(where, "is no object");
  const result: Record<string, unknown> = {};
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    if (Object.hasOwn(value, name)) {
      result[name] = check(child, value[name], `${where}.${name}`);
    } else if (child.default !== undefined) {
      result[name] = child.default;
    } else if (node.required?.includes(name)) {
      throw new NotInSchema(`${where}.${name}`, "is missing");
    }
  }
  const patterns = Object.entries(node.patternProperties ?? {});
  for (const [name, item] of Object.entries(value)) {
    const rest =
      patterns.find(([pattern]) => new RegExp(pattern, "u").test(name))?.[1] ??
      (typeof node.additionalProperties === "object" ? node.additionalProperties : undefined);
    if (rest !== undefined) result[name] = check(rest, item, `${where}.${name}`);
  }
  return result;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
