// What a regular expression can cost. V8 backtracks: nested repetitions take exponential time, and repetitions beside each
// other a power of the length. The first kind is refused at load; for the second a check counts length ** degree.

/** A sequence of parts that may match; a group has several. */
type Sequence = readonly Part[];

interface Part {
  /** Of what matches one character; undefined for a group and for what matches none. */
  readonly characters: Characters | undefined;
  readonly group: readonly Sequence[] | undefined;
  /** A group that looks ahead or behind, and takes nothing. */
  readonly isLook: boolean;
  readonly min: number;
  readonly max: number;
}

/** Repetitions up to here are taken for a few copies, beyond it for no limit at all. */
const FEW = 10;

/** Why a pattern is refused, undefined when it is not. */
export function checkPattern(source: string): string | undefined {
  try {
    new RegExp(source, 'u');
    degreeOf(source);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A match takes at most some constant times length ** degree. @throws Error when it can take exponentially long */
export function degreeOf(source: string): number {
  if (/\\[1-9]|\\k</.test(source)) throw new Error('references to groups are not taken: they can take very long');
  const alternatives = parse(source);
  const isAnchored = alternatives.length === 1 && source.startsWith('^');
  const degree = Math.max(0, ...alternatives.map(degreeOfSequence));
  return Math.max(1, degree + (isAnchored || degree === 0 ? 0 : 1));
}

const isVariable = ({ min, max }: Part): boolean => min !== max;
const isUnbounded = ({ max }: Part): boolean => max > FEW;

function degreeOfSequence(sequence: Sequence): number {
  let chain = 0;
  let most = 0;
  let last: Characters = new Set();
  for (const part of sequence) {
    const inner = part.group;
    if (inner !== undefined) {
      if (isUnbounded(part)) {
        refuseInside(inner, firstOf(inner));
        chain++;
      } else chain += Math.max(0, ...inner.map(degreeOfSequence)) * Math.max(1, part.max);
      last = new Set([...last, ...charactersOf(part)]);
    } else if (isUnbounded(part)) {
      chain++;
      last = new Set([...last, ...charactersOf(part)]);
    } else if (part.min > 0 && part.characters !== undefined && isDisjoint(charactersOf(part), last)) {
      // What comes before cannot run over this character, so it ends at one place alone.
      chain = 0;
      last = new Set();
    }
    most = Math.max(most, chain);
  }
  return most;
}

/**
 * @param follow what can come after it
 * @throws Error when what is repeated can match the same text in several ways
 */
function refuseInside(alternatives: readonly Sequence[], follow: Characters): void {
  const seen = new Set<string>();
  for (const alternative of alternatives) {
    alternative.forEach((part, i) => {
      if (isVariable(part)) throw new Error('a repetition inside a repetition can take exponentially long');
      if (part.group !== undefined && !part.isLook) refuseInside(part.group, firstOf([alternative.slice(i + 1)], follow));
    });
    const first = firstOf([alternative], follow);
    if (!isDisjoint(first, seen)) throw new Error('repeated alternatives that begin alike can take exponentially long');
    for (const char of first) seen.add(char);
  }
}

type Characters = ReadonlySet<string>;

/** What a match can begin with: where nothing has to be taken, with what follows. */
function firstOf(alternatives: readonly Sequence[], follow: Characters = new Set()): Characters {
  const first = new Set<string>();
  for (const alternative of alternatives) {
    const taker = alternative.findIndex((part) => !canBeEmpty(part));
    const begins = taker < 0 ? alternative : alternative.slice(0, taker + 1);
    for (const part of begins) {
      const ofPart = part.isLook ? [] : (part.characters ?? firstOf(part.group ?? []));
      for (const char of ofPart) first.add(char);
    }
    if (taker < 0) for (const char of follow) first.add(char);
  }
  return first;
}

function canBeEmpty({ characters, group, isLook, min }: Part): boolean {
  if (min === 0 || isLook) return true;
  return characters === undefined && (group === undefined || group.some((alternative) => alternative.every(canBeEmpty)));
}

function charactersOf({ characters, group }: Part): Characters {
  return characters ?? new Set(group?.flatMap((one) => one.flatMap((part) => [...charactersOf(part)])));
}

/** Stands for all characters: what patterns tell apart is told apart here, and by those that the pattern itself names. */
const SAMPLES = [...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), '\u00a0', 'é', 'Ж', '中', '\u2028', '😀'];
const NAMED = /\\u\{([\da-f]+)\}|\\u([\da-f]{4})|\\x([\da-f]{2})|([^\0-\x7f])/giu;

/** With those beside them: a range, or what it leaves out, shares an end with whatever it overlaps. */
function samplesOf(source: string): readonly string[] {
  const named = Array.from(source.matchAll(NAMED), ([, long, short, byte, char]) =>
    char === undefined ? Number.parseInt((long ?? short ?? byte) as string, 16) : (char.codePointAt(0) as number),
  );
  const beside = named.flatMap((code) => [code - 1, code, code + 1]).filter((code) => code > 127 && code <= 0x10ffff);
  return [...SAMPLES, ...new Set(beside.map((code) => String.fromCodePoint(code)))];
}

/** A property may hold of any character that has no sample, so it is taken to hold of all beyond ASCII. */
function matchedBy(set: string, samples: readonly string[]): Characters {
  const test = new RegExp(`^(?:${set})$`, 'u');
  const isProperty = /\\p\{/i.test(set);
  return new Set(samples.filter((char) => test.test(char) || (isProperty && char > '\x7f')));
}

function isDisjoint(a: Characters, b: Characters): boolean {
  for (const char of a) if (b.has(char)) return false;
  return true;
}

const ATOM =
  /\\(?:u\{[\da-f]+\}|u[\da-f]{4}|x[\da-f]{2}|c[a-z]|[pP]\{[^}]*\}|[\s\S])|\[(?:\\[\s\S]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?|[\s\S]/giuy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/y;

function parse(source: string): readonly Sequence[] {
  const samples = samplesOf(source);
  let at = 0;
  return alternatives();

  function alternatives(): Sequence[] {
    const found: Part[][] = [[]];
    while (at < source.length && source[at] !== ')') {
      if (source[at] === '|') {
        at++;
        found.push([]);
      } else (found.at(-1) as Part[]).push(part());
    }
    return found;
  }

  function part(): Part {
    ATOM.lastIndex = at;
    const text = ATOM.exec(source)?.[0] as string;
    at += text.length;
    let group: Sequence[] | undefined;
    if (text.startsWith('(')) {
      group = alternatives();
      at++;
    }
    const isAssertion = text === '^' || text === '$' || text === '\\b' || text === '\\B';
    const characters = group !== undefined || isAssertion ? undefined : matchedBy(text, samples);
    return { characters, group, isLook: /^\(\?<?[=!]/.test(text), ...quantifier() };
  }

  function quantifier(): { min: number; max: number } {
    QUANTIFIER.lastIndex = at;
    const match = QUANTIFIER.exec(source);
    if (match === null) return { min: 1, max: 1 };
    at += match[0].length;
    const [, sign, least, comma, most] = match;
    if (sign !== undefined) return { min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity };
    const min = Number(least);
    return { min, max: comma === undefined ? min : most === '' ? Infinity : Number(most) };
  }
}
