/** URI templates (RFC 6570): parsed, matched against URIs, and expanded. */

const OPERATORS = {
  "": { first: "", separator: ",", allowed: "[^/?#,]", encode: encodeURIComponent },
  "+": { first: "", separator: ",", allowed: ".", encode: encodeURI },
  "#": { first: "#", separator: ",", allowed: ".", encode: encodeURI },
  "/": { first: "/", separator: "/", allowed: "[^/?#]", encode: encodeURIComponent },
  "?": { first: "?", separator: "&", isNamed: true, encode: encodeURIComponent },
  "&": { first: "&", separator: "&", isNamed: true, encode: encodeURIComponent },
};

const VARIABLE = /^([A-Za-z_][A-Za-z0-9_.]*)(\*)?$/;

/** A URI, or a template of some. */
export class UriTemplate {
  #parts;

  /**
   * @param {string} text
   * @throws {TypeError} Where it is no template.
   */
  constructor(text) {
    this.text = text;
    this.#parts = parse(text);
    this.variables = this.#parts.flatMap(({ variables = [] }) => variables);
    const names = this.variables.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice) throw new TypeError(`it has the variable \`${twice}\` twice`);
  }

  /**
   * What the variables stand for in a URI, or nothing if it is none of the template. A variable with `*` is an array.
   *
   * @param {string} uri
   * @returns {Record<string, string | string[]> | undefined}
   */
  match(uri) {
    const query = this.#parts.some(({ operator }) => operator?.isNamed);
    const [path, search] = query ? split(uri) : [uri, ""];
    const pattern = this.#parts.map(toPattern).join("");
    const found = path.match(new RegExp(`^${pattern}$`, "u"));
    if (!found) return undefined;
    try {
      const values = {};
      let group = 1;
      for (const { operator, variables } of this.#parts) {
        if (!variables) continue;
        if (operator.isNamed) fromQuery(search, variables, values);
        else for (const variable of variables) fromPath(found[group++], operator, variable, values);
      }
      return values;
    } catch (thrown) {
      // A `%` that encodes nothing.
      if (thrown instanceof URIError) return undefined;
      throw thrown;
    }
  }

  /**
   * The URI for these values.
   *
   * @throws {TypeError} Where a variable that it needs is missing, or there is none of a name.
   */
  expand(values) {
    for (const name of Object.keys(values)) {
      if (!this.variables.some((variable) => variable.name === name)) throw new TypeError(`the template ${this.text} has no variable \`${name}\``);
    }
    return this.#parts.map((part) => (part.variables ? expandPart(part, values, this.text) : part.literal)).join("");
  }
}

function parse(text) {
  const parts = [];
  for (const piece of text.split(/(\{[^}]*\})/)) {
    if (piece.startsWith("{")) {
      if (!piece.endsWith("}")) throw new TypeError("it has a `{` without a `}`");
      parts.push(parseExpression(piece.slice(1, -1)));
    } else if (piece.includes("{") || piece.includes("}")) {
      throw new TypeError("it has a brace without the other one");
    } else if (piece) {
      parts.push({ literal: piece });
    }
  }
  return parts;
}

function parseExpression(text) {
  const sign = /^[+#/?&]/.test(text) ? text[0] : "";
  const operator = OPERATORS[sign];
  const variables = text.slice(sign.length).split(",").map((each) => {
    const [, name, star] = each.match(VARIABLE) ?? [];
    if (!name) throw new TypeError(`\`{${text}}\` is no expression: write \`{name}\`, \`{+path}\`, \`{/parts*}\` or \`{?page,tag*}\``);
    return { name, isList: Boolean(star), isRequired: !operator.isNamed };
  });
  return { operator, variables };
}

const escape = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

function toPattern({ literal, operator, variables }) {
  if (literal !== undefined) return escape(literal);
  if (operator.isNamed) return "";
  const one = ({ isList }) => (isList && operator.separator === "/" ? "([^?#]+?)" : `(${operator.allowed}+?)`);
  return escape(operator.first) + variables.map(one).join(escape(operator.separator));
}

function split(uri) {
  const at = uri.search(/[?&]/);
  return at < 0 ? [uri, ""] : [uri.slice(0, at), uri.slice(at + 1)];
}

function fromPath(text, operator, { name, isList }, values) {
  values[name] = isList ? text.split(operator.separator).map(decodeURIComponent) : decodeURIComponent(text);
}

function fromQuery(search, variables, values) {
  for (const pair of search.split("&").filter(Boolean)) {
    const [key, ...rest] = pair.split("=");
    const variable = variables.find(({ name }) => name === decodeURIComponent(key));
    if (!variable) continue;
    const value = decodeURIComponent(rest.join("=").replace(/\+/g, " "));
    if (variable.isList) (values[variable.name] ??= []).push(value);
    else values[variable.name] = value;
  }
}

function expandPart({ operator, variables }, values, template) {
  const written = [];
  for (const { name, isList, isRequired } of variables) {
    const value = values[name];
    if (value === undefined || value === "") {
      if (isRequired) throw new TypeError(`the template ${template} needs a value for \`${name}\``);
      continue;
    }
    const all = (isList ? [value].flat() : [value]).map((each) => operator.encode(String(each)));
    written.push(...all.map((each) => (operator.isNamed ? `${name}=${each}` : each)));
  }
  return written.length === 0 ? "" : operator.first + written.join(operator.separator);
}
