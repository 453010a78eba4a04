// Parses the YAML of the manifests in deploy/: nested block mappings and sequences of plain or double-quoted scalars,
// and literal blocks. All other YAML is refused, most of all forms that YAML 1.1 and 1.2 read differently.

export type Plain = string | number | boolean | readonly Plain[] | { readonly [key: string]: Plain };

interface Line {
  readonly indent: number;
  readonly text: string;
  readonly number: number;
}

/** @throws Error that names the line, for any other form */
export function parsePlainYaml(source: string): Plain {
  const raw = source.split('\n');
  const lines: Line[] = [];
  for (let i = 0; i < raw.length; i++) {
    const text = raw[i] ?? '';
    if (/^\s*(#.*)?$/.test(text)) continue;
    const indent = text.search(/\S/);
    lines.push({ indent, text: text.slice(indent), number: i + 1 });
    if (!/:\s\|$/.test(text)) continue;
    // The lines of a literal block are text, even if they look like YAML. They are read below, from the raw source.
    while (
      i + 1 < raw.length &&
      /^\s*$|^\s/.test(raw[i + 1] ?? '') &&
      ((raw[i + 1] ?? '').trim() === '' || (raw[i + 1] ?? '').search(/\S/) > indent)
    )
      i++;
  }
  let at = 0;
  const value = node(0);
  if (at < lines.length) fail(lines[at], 'its indentation fits nothing above');
  return value;

  function node(indent: number): Plain {
    return lines[at]?.text.startsWith('- ') ? sequence(indent) : mapping(indent, {});
  }

  function sequence(indent: number): Plain[] {
    const items: Plain[] = [];
    for (let line = lines[at]; line?.indent === indent && line.text.startsWith('- '); line = lines[at]) {
      const rest = line.text.slice(2);
      if (!/^[\w./-]+:( |$)/.test(rest)) {
        items.push(scalar(rest, line));
        at++;
        continue;
      }
      lines[at] = { ...line, indent: indent + 2, text: rest };
      items.push(mapping(indent + 2, {}));
    }
    return items;
  }

  function mapping(indent: number, into: Record<string, Plain>): Record<string, Plain> {
    for (let line = lines[at]; line?.indent === indent; line = lines[at]) {
      const match = /^([\w./-]+):(?: (.+))?$/.exec(line.text);
      const key = match?.[1];
      if (key === undefined) fail(line, 'it is neither "key: value" nor "- item"');
      if (key in into) fail(line, `${key} is there twice`);
      at++;
      if (match?.[2] === '|') into[key] = literal(line);
      else if (match?.[2] !== undefined) into[key] = scalar(match[2], line);
      else if ((lines[at]?.indent ?? -1) > indent) into[key] = node(lines[at]?.indent ?? 0);
      else fail(line, 'it has no value');
    }
    return into;
  }

  function literal(line: Line): string {
    const block: string[] = [];
    for (let i = line.number; i < raw.length; i++) {
      const text = raw[i] ?? '';
      if (text.trim() !== '' && text.search(/\S/) <= line.indent) break;
      block.push(text.slice(line.indent + 2));
    }
    return `${block.join('\n').trimEnd()}\n`;
  }
}

/** YAML 1.1 reads these as booleans, null, octal or sexagesimal numbers. YAML 1.2 reads them differently. */
const AMBIGUOUS = /^(y|n|yes|no|on|off|null|~|0[0-7]+|0o.*|0x.*|[0-9]+(:[0-9]+)+|[0-9.]+e.*|\.inf|\.nan)$/i;

function scalar(text: string, line: Line): Plain {
  if (text.startsWith('"')) return JSON.parse(text) as string;
  if (/^[[\]{}&*!|>'%@`,?#]/.test(text) || / #|: /.test(text))
    fail(line, 'it is written in a way that is not read here');
  if (AMBIGUOUS.test(text)) fail(line, `${text} means different things in YAML 1.1 and 1.2`);
  if (text === 'true' || text === 'false') return text === 'true';
  return /^(0|[1-9][0-9]*)$/.test(text) ? Number(text) : text;
}

function fail(line: Line | undefined, why: string): never {
  throw new Error(`Cannot read line ${line?.number}, ${JSON.stringify(line?.text)}: ${why}`);
}
