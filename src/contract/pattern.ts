// What a regular expression can cost. V8 backtracks: nested repetitions take exponential time, and repetitions beside each
// other a power of the length. The first kind is refused at load; for the second a check counts length ** degree.

/** A sequence of parts that may match; a group has several. */
type Sequence = readonly Part[];

interface Part {
  /** Source of what matches one character; undefined for a group and for what matches none. */
  readonly set: string | undefined;
  readonly group: readonly Sequence[] | undefined;
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
        refuseInside(inner);
        chain++;
      } else chain += Math.max(0, ...inner.map(degreeOfSequence)) * Math.max(1, part.max);
      last = new Set([...last, ...inner.flatMap((one) => one.flatMap((each) => [...charactersOf(each)]))]);
    } else if (isUnbounded(part)) {
      chain++;
      last = new Set([...last, ...charactersOf(part)]);
    } else if (part.min > 0 && part.set !== undefined && isDisjoint(charactersOf(part), last)) {
      // What comes before cannot run over this character, so it ends at one place alone.
      chain = 0;
      last = new Set();
    }
    most = Math.max(most, chain);
  }
  return most;
}

/** @throws Error when what is repeated can match the same text in several ways */
function refuseInside(alternatives: readonly Sequence[]): void {
  for (const part of alternatives.flat()) {
    if (isVariable(part)) throw new Error('a repetition inside a repetition can take exponentially long');
    if (part.group !== undefined) refuseInside(part.group);
  }
  const seen = new Set<string>();
  for (const alternative of alternatives) {
    const first = alternative.length === 0 ? new Set<string>() : charactersOf(alternative[0] as Part);
    if (!isDisjoint(first, seen)) throw new Error('repeated alternatives that begin alike can take exponentially long');
    for (const char of first) seen.add(char);
  }
}

type Characters = ReadonlySet<string>;

/** Stands for all characters: what patterns tell apart is told apart here. */
const SAMPLES = [...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), '\u00a0', 'é', 'Ж', '中', '\u2028', '😀'];

function charactersOf({ set, group }: Part): Characters {
  if (group !== undefined) return new Set(group.flatMap((one) => (one[0] === undefined ? [] : [...charactersOf(one[0])])));
  if (set === undefined) return new Set();
  const test = new RegExp(`^(?:${set})$`, 'u');
  return new Set(SAMPLES.filter((char) => test.test(char)));
}

function isDisjoint(a: Characters, b: Characters): boolean {
  for (const char of a) if (b.has(char)) return false;
  return true;
}

const ATOM =
  /\\(?:u\{[\da-f]+\}|u[\da-f]{4}|x[\da-f]{2}|c[a-z]|[pP]\{[^}]*\}|[\s\S])|\[(?:\\[\s\S]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?|[\s\S]/giuy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/y;

function parse(source: string): readonly Sequence[] {
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
    return { set: group !== undefined || isAssertion ? undefined : text, group, ...quantifier() };
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
