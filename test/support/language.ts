// Finds the sentences that house rules refuse: openings without a subject, and verbs that stood for ten others. See
// CONTRIBUTING.md, "How it speaks". Run it on files: node --import tsx test/support/language.ts src/request
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Finding {
  readonly line: number;
  readonly text: string;
  readonly rule: string;
}

const RULES: readonly { readonly rule: string; readonly pattern: RegExp }[] = [
  { rule: 'a sentence begins with its subject', pattern: /^(?:Of|That which|Those which|Whoever|Whatever|Whose)\b/ },
  { rule: 'a sentence begins with its subject', pattern: /^(?:What|Who|Which)\b(?!.*\?$)/ },
  { rule: 'report, log, return or send', pattern: /\b(?:tell|tells|told|telling)\b/i },
  {
    rule: 'say where a thing is, or that it holds',
    pattern: /\b(?:stand|stands|stood|standing)\b(?! for\b| in for\b|-)/i,
  },
  { rule: 'finish, resolve, or decide', pattern: /\b(?:settle|settles|settling)\b/i },
  { rule: 'continue, or keep', pattern: /\b(?:go|goes|going|went) on\b/i },
];
/** A comment is read in a tooltip, so its first word cannot be a pronoun. */
const PRONOUN = { rule: 'the noun comes before its pronoun', pattern: /^(?:It|They|He|She|These|Those|Them)\b/ };

/**
 * Returns each comment of a TypeScript or JavaScript text, with the line on which it begins. A string that looks like a
 * comment counts as one.
 */
function commentsOf(source: string): { readonly line: number; readonly text: string }[] {
  const comments: { line: number; text: string }[] = [];
  let last = -2;
  let isBlock = false;
  for (const [index, line] of source.split('\n').entries()) {
    const trimmed = line.trim();
    const single = /^\/\/ ?(.*)$/.exec(trimmed) ?? (isBlock ? null : /(?:^|[;{},)\]] )\/\/ (.*)$/.exec(trimmed));
    if (!isBlock && trimmed.startsWith('/*')) {
      comments.push({ line: index + 1, text: trimmed.replace(/^\/\*+ ?/, '').replace(/\s*\*\/.*$/, '') });
      isBlock = !trimmed.includes('*/');
    } else if (isBlock) {
      const text = trimmed.replace(/^\* ?/, '').replace(/\s*\*?\/$/, '');
      const comment = comments.at(-1);
      // Each tag of a doc comment begins a new text, without the tag's name and the parameter's name.
      const tag = /^@\w+(?:\s+(?:\{[^}]*\}\s*)?[\w.]+)?\s*(.*)$/.exec(text);
      if (tag !== null) comments.push({ line: index + 1, text: `\u0001${tag[1] ?? ''}` });
      else if (comment !== undefined) comment.text += ` ${text}`;
      isBlock = !trimmed.includes('*/');
    } else if (single !== null) {
      const comment = comments.at(-1);
      if (trimmed.startsWith('//') && last === index - 1 && comment !== undefined)
        comment.text += ` ${single[1] ?? ''}`;
      else comments.push({ line: index + 1, text: single[1] ?? '' });
      last = trimmed.startsWith('//') ? index : -2;
    }
  }
  return comments;
}

/** Returns the paragraphs, list items and table cells of a Markdown text, without its code. */
function paragraphsOf(source: string): { readonly line: number; readonly text: string }[] {
  const paragraphs: { line: number; text: string }[] = [];
  let isCode = false;
  let isOpen = false;
  for (const [index, line] of source.split('\n').entries()) {
    if (/^\s*```/.test(line)) {
      isCode = !isCode;
      isOpen = false;
      continue;
    }
    if (isCode) continue;
    const text = line.replace(/^\s*(?:[-*]|\d+\.|#+|>)\s+/, '').trim();
    const begins = !isOpen || text === '' || text !== line.trim() || text.startsWith('|');
    if (text.startsWith('|'))
      for (const cell of text.split('|')) paragraphs.push({ line: index + 1, text: `\u0001${cell.trim()}` });
    else if (begins) paragraphs.push({ line: index + 1, text });
    else {
      const paragraph = paragraphs.at(-1);
      if (paragraph !== undefined) paragraph.text += ` ${text}`;
    }
    isOpen = text !== '' && !text.startsWith('|');
  }
  return paragraphs;
}

/** Returns every sentence of a file that a rule refuses. Names in backquotes and quoted words are not checked. */
export function findRefusedSentences(path: string): Finding[] {
  const source = readFileSync(path, 'utf8');
  const isCode = !path.endsWith('.md');
  const findings: Finding[] = [];
  for (const { line, text } of isCode ? commentsOf(source) : paragraphsOf(source)) {
    const isPart = text.startsWith('\u0001');
    const plain = text.replace('\u0001', '').replace(/`[^`]*`|"[^"]*"|“[^”]*”/g, '`x`');
    for (const [index, sentence] of plain.split(/(?<=[.!?])\s+(?=[A-Z`])/).entries()) {
      const rules = isCode && index === 0 && !isPart ? [...RULES, PRONOUN] : RULES;
      for (const { rule, pattern } of rules) if (pattern.test(sentence)) findings.push({ line, text: sentence, rule });
    }
  }
  return findings;
}

/** Returns every source and document in a folder, or the path itself when it is a file. */
export function textFiles(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  // The packages of an example link to this folder, so a walk through them would not end.
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => !/node_modules|\bsamples\b/.test(name))
    .flatMap((entry) => {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) return textFiles(inner);
      return entry.isFile() && /\.(?:ts|js|mjs|md|css)$/.test(entry.name) ? [inner] : [];
    })
    .sort();
}

if (process.argv[1] === import.meta.filename) {
  const files = process.argv.slice(2).flatMap(textFiles);
  let count = 0;
  for (const file of files) {
    for (const { line, text, rule } of findRefusedSentences(file)) {
      count++;
      process.stdout.write(`${file}:${line}: ${rule}: ${text}\n`);
    }
  }
  process.stdout.write(`${count} sentences in ${files.length} files\n`);
}
