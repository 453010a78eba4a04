// Accepted patterns with their estimated cost, and refused patterns with their messages. The rules are in the head of
// pattern.ts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { LIMITS } from '../../src/contract/types/check-cost.ts';
import { checkPattern, retriesOf, stepsOf } from '../../src/contract/types/pattern.ts';

/** One way for each character of the text. */
const N = Infinity;
const SEVERAL = ['a?'.repeat(24), 'a{24}'].join('');

describe('a pattern is accepted with the expected retries of its repetitions', () => {
  const rows: [pattern: string, retries: readonly number[], fits?: string][] = [
    // Common patterns.
    ['^[a-z0-9]+(?:-[a-z0-9]+)*$', [], 'a-slug-4'],
    ['^\\d+(?:\\.\\d+)*$', [], '10.20.30'],
    ['^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-[\\w.-]+)?(?:\\+[\\w.-]+)?$', [], '1.2.3-rc.1+5'],
    ['^\\d{1,3}(?:\\.\\d{1,3}){3}$', [], '127.0.0.1'],
    ['^([0-9]{1,3}\\.){3}[0-9]{1,3}$', [], '127.0.0.1'],
    [
      '^(?:(?:25[0-5]|2[0-4]\\d|[01]?\\d\\d?)\\.){3}(?:25[0-5]|2[0-4]\\d|[01]?\\d\\d?)$',
      [1, 2, 1, 2, 1, 2, 1, 2],
      '255.249.9.10',
    ],
    ['^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$', [N], 'ada@example.com'],
    ['^[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+$', [], 'ada@example.co.uk'],
    ['^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$', [1, N], 'api.a-b.example'],
    ['^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])$', [], '2026-12-31'],
    ['^\\+?[0-9 ]{6,20}$', [], '+49 30 123456'],
    ['^(?:\\+\\d{1,3}[- ]?)?\\(?\\d{3}\\)?[- ]?\\d{3}[- ]?\\d{4}$', [2], '+1 (555) 123-4567'],
    ['^#(?:[0-9a-f]{3}){1,2}$', [], '#00ff7f'],
    ['^[a-z]{2,3}(?:-[A-Z]{2})?$', [], 'de-AT'],
    ['^[A-Z]{2,3}-\\d{4,6}$', [], 'ABC-123456'],
    ['^[A-Z][a-z]+(?: [A-Z][a-z]+)*$', [], 'Ada King Lovelace'],
    ['^\\d+(?:\\.\\d+)?(?:,\\d+(?:\\.\\d+)?)*$', [], '1,2.5,3'],
    ['^\\w+(?:::\\w+)*$', [], 'std::fmt::Write'],
    ['^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$', [N, 1], 'YWJjZA=='],
    ['^(?=.*[A-Z])(?=.*\\d).{8,64}$', [1, 1], 'Passw0rd!'],
    ['^https?:\\/\\/[^\\s/$.?#].[^\\s]*$', [], 'https://a.b/c'],
    ['^\\p{L}+(?:[ -]\\p{L}+)*$', [], 'Jean-Luc Ångström'],
    // Single repetitions.
    ['^abc$', []],
    ['abc', [3]],
    ['^[a-z]+$', []],
    ['[a-z]+', [N]],
    ['^a$|^b$', [3]],
    ['^a*b*$', []],
    ['^é*😀*$', []],
    ['^😀*é*$', []],
    ['^a*b*a*$', [N]],
    ['^a*[ab]b*$', [1]],
    ['^[a-z]*ing-\\d*$', [3]],
    ['^\\S+@\\S+$', [N]],
    ['^.*.*.*$', [N, N]],
    ['^.*a.*b.*c$', [N, N, 1]],
    ['^a*a*-b*b*$', [N, N]],
    ['^a?a?a$', [1, 1]],
    ['^\\d{4,6}\\d{2}x$', [2]],
    ['^a*(?=[^x]*x)b$', [N]],
    ['^(?=.*a.*b)c', [N, 1]],
    // Repeated groups.
    ['^(?:ab|cd)+x$', []],
    ['^(?:é|ü)+$', []],
    ['^(?:[à-ü]|[а-я]x)+$', []],
    ['^(?:a(?=b)|b)+$', []],
    ['^(?:a(?:b|c)d)+$', []],
    ['^((ab*)c)*$', []],
    ['^(?:(?:a|b){3}-)*$', []],
    ['^(?:a+-)*(?:b+-)*$', []],
    ['^\\w+(?:\\s+\\w+)*$', []],
    ['^(?:-(?:b|a*))*$', []],
    ['^(?:\\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$', []],
    ['^(?:[a-z]*[a-z]\\.)*(?:X(?=ab|ac)y)*$', [1]],
    ['^[a-z]*(?=.*x)-', [N, 1]],
    // The limits of the characters of a pattern, and of the steps that it can take.
    ['^a{5000}$', []],
    ['^[a-z]{0,99}[a-z]{2999}$', [99]],
  ];
  for (const [pattern, retries, fits] of rows) {
    test(`${pattern} → ${JSON.stringify(retries).replaceAll('null', 'n')}`, () => {
      assert.equal(checkPattern(pattern), undefined);
      assert.deepEqual(retriesOf(pattern), retries);
      if (fits === undefined) return;
      assert.match(fits, new RegExp(pattern, 'u'));
      // One request may match the pattern many times.
      assert.ok(stepsOf(retries, fits.length) * 50 < LIMITS.steps);
    });
  }
});

describe('a pattern is refused with its reason', () => {
  const NESTED = /let it match no character that may come directly after it/;
  const ALIKE = /let each begin with a character of its own/;
  const rows: [pattern: string, reason: RegExp][] = [
    ['^(a+)+$', NESTED],
    ['^(?:[a-z0-9]{1,10}-?){1,10}$', NESTED],
    ['^(?:\\w{1,10}\\s?){1,8}$', NESTED],
    ['^\\+?(?:\\d{1,4}[ .-]?){1,8}$', NESTED],
    ['^(?:[a-z](?:[a-z0-9-]{0,10}[a-z0-9])?\\.?){1,10}$', NESTED],
    ['^\\w+([.-]?\\w+)*@\\w+([.-]?\\w+)*(\\.\\w{2,3})+$', NESTED],
    ['^(?:-a*)*a*$', NESTED],
    ['^(?:-a*(?:c|ac))*$', NESTED],
    ['^((a)?){20,}$', NESTED],
    ['^(?:a[ab]b*[ab])*$', NESTED],
    ['^(?:a[ab]b?[ab]){0,9}$', NESTED],
    ['^(?:-a*-?)*$', NESTED],
    ['^(?:[]*aa*)*$', NESTED],
    ['^(?:a*a[]*)*$', NESTED],
    ['^(?:-a*a*)*$', NESTED],
    ['^(?:-a*[ab]b*)*$', NESTED],
    ['^(?:a*[ac]cc*-)*$', NESTED],
    ['^(?:-(?:b(?:a*a*))?)*$', NESTED],
    ['^(?:-(?:ba*a*c)?)*$', NESTED],
    ['^(?:a+|b)*$', NESTED],
    ['^(?:-(?=.*b)a)*$', /a look-ahead in a repetition can take very long/],
    ['^(a|ab)*$', ALIKE],
    ['^(a|a){2,5}$', ALIKE],
    ['^(?:x(?:a|a)y)*$', ALIKE],
    ['(a*)*', NESTED],
    ['^(?:|a)*$', ALIKE],
    ['^(?:(?:|b)a|a)*$', ALIKE],
    ['^(?:\\Ba|a)*$', ALIKE],
    ['^(?:(?!b)a|a)*$', ALIKE],
    // Characters beyond ASCII, written literally, by code, by two codes and by a property.
    ['^(?:[а-я]|[а-я][а-я])*$', ALIKE],
    ['^(?:[а-я]|[^ая][а-я])*$', ALIKE],
    ['^(?:[\\u0430-\\u044f]|\\u{432}в)*$', ALIKE],
    ['^(?:\\ud83d\\ude00|😀x)*$', ALIKE],
    ['^(?:[\\ud83d\\ude10-\\ud83d\\ude20]|[\\u{1f615}-\\u{1f616}]x)*$', ALIKE],
    ['^(?:[^a]|é)*$', ALIKE],
    ['^(?:.|é)*$', ALIKE],
    ['^(?:\\D|é)*$', ALIKE],
    ['^(?:\\p{L}+\\W)+x$', NESTED],
    ['^(?:\\p{Ll}|[ա-ֆ]x)*$', ALIKE],
    ['^(?:\\p{Script=Greek}|\\p{Ll}x)*$', ALIKE],
    ['^(?:\\s|[^\\0-\\xff\\u2028\\u2029]x)*$', ALIKE],
    ['^(.)\\1$', /references to groups are not supported/],
    ['^(?<a>.)\\k<a>$', /references to groups are not supported/],
    ['^a(?<=b.*)$', /look-behind/],
    ['^a{24}(?<=(?:a|a){24})$', /look-behind/],
    [`^(?=${'(?:a|a)'.repeat(24)}b)`, /a text of length 1 can take too long/],
    [`^${SEVERAL}$`, /a text of length 24 can take too long/],
    ['^(?:(?:a{100}){100}){100}$', /expand to more than 5000 characters and groups/],
    ['^(?:(?:(?:a|b){100}|c){100}|d){100}$', /expand to more than 5000 characters and groups/],
    ['^[a-z]{0,100}[a-z]{2999}$', /a text of length 2999 can take too long/],
    ['^a{5001}$', /expand to more than 5000 characters and groups/],
    ['^(?i:a)$', /flags of a group|Invalid group/],
    ['^[a$', /Invalid regular expression/],
  ];
  for (const [pattern, reason] of rows) {
    test(pattern, () => assert.match(checkPattern(pattern) ?? 'it is taken', reason));
  }
});

test('a digit behind an escaped backslash is not a reference to a group', () =>
  assert.equal(checkPattern('^\\\\1[\\\\k]$'), undefined));

describe('the step count for a pattern and a text length', () => {
  const rows: [pattern: string, length: number, steps: number][] = [
    ['^a*$', 99, 100],
    ['^.*a.*b.*c$', 99, 2e6],
    ['^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$', 254, 65_025],
    // A bounded repetition counts with its bound, or with the length of the text if that is less.
    ['^\\d{4,6}\\d{2}x$', 9, 30],
    ['^[a-z]{1,500}[a-z0-9]{1,500}$', 9, 100],
    ['^[a-z]{1,500}[a-z0-9]{1,500}$', 9999, 5_000_000],
  ];
  for (const [pattern, length, steps] of rows) {
    test(`${pattern}, ${length} characters`, () => assert.equal(stepsOf(retriesOf(pattern), length), steps));
  }
});

/** Generates all rounds of one to four parts. Each part is a set of characters, with or without a repetition. */
function* rounds(): Generator<Round> {
  const parts = ['a', 'b', '[ab]', '-'].flatMap((set) =>
    ['', '*'].map((sign) => ({ set, isMany: sign === '*', text: set + sign })),
  );
  for (
    let made: Round[] = parts.map((part) => [part]);
    made[0]?.length !== 5;
    made = made.flatMap((round) => parts.map((part) => [...round, part]))
  ) {
    yield* made;
  }
}
type Round = readonly { readonly set: string; readonly isMany: boolean; readonly text: string }[];

/** Decides exactly whether a repeated round can match some text in two ways. */
function hasTwoWays(round: Round): boolean {
  const size = round.length;
  const next = round.map(({ isMany }, from) => {
    const places = isMany ? [from] : [];
    for (let step = 1; step <= size; step++) {
      places.push((from + step) % size);
      if (!round[(from + step) % size]?.isMany) break;
    }
    return places;
  });
  const meet = (i: number, j: number) =>
    [...'ab-'].some((char) => round[i]?.set.includes(char) && round[j]?.set.includes(char));
  const seen = new Set<string>();
  const pairs = next.flatMap((places) => places.flatMap((i, at) => places.slice(at + 1).map((j) => [i, j] as const)));
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [i, j] = pair;
    if (!meet(i, j)) continue;
    if (i === j) return true;
    if (seen.has(pair.join())) continue;
    seen.add(pair.join());
    for (const a of next[i] as number[]) for (const b of next[j] as number[]) pairs.push([a, b]);
  }
  return false;
}

test('an accepted repetition matches each text in only one way', () => {
  let taken = 0;
  for (const round of rounds()) {
    if (round.every(({ isMany }) => isMany)) continue;
    const pattern = `^(?:${round.map(({ text }) => text).join('')})*$`;
    if (checkPattern(pattern) !== undefined) continue;
    taken++;
    assert.ok(!hasTwoWays(round), pattern);
  }
  assert.ok(taken > 500, `${taken} patterns are accepted`);
  assert.ok(hasTwoWays(['a', '[ab]', 'b', '[ab]'].map((set, i) => ({ set, isMany: i === 2, text: '' }))));
});

/** A pattern with a matcher that backtracks like V8. */
interface Matcher {
  readonly text: string;
  match(text: string, at: number, step: () => void, then: (at: number) => boolean): boolean;
}

const one = ([text, set]: readonly [string, string]): Matcher => ({
  text,
  match: (given, at, step, then) => {
    step();
    return at < given.length && set.includes(given.charAt(at)) && then(at + 1);
  },
});
const inOrder = (parts: readonly Matcher[]): Matcher => ({
  text: parts.map(({ text }) => text).join(''),
  match: (given, from, step, then) => {
    const next = (i: number, at: number): boolean =>
      parts[i]?.match(given, at, step, (end) => next(i + 1, end)) ?? then(at);
    return next(0, from);
  },
});
const oneOf = (choices: readonly Matcher[]): Matcher => ({
  text: `(?:${choices.map(({ text }) => text).join('|')})`,
  match: (given, at, step, then) => choices.some((choice) => choice.match(given, at, step, then)),
});
const repeated = ({ text, match }: Matcher, [sign, min, max]: readonly [string, number, number]): Matcher => ({
  text: text + sign,
  match: (given, from, step, then) => {
    const round = (count: number, at: number): boolean => {
      step();
      const again = (end: number) => (end > at || count < min) && round(count + 1, end);
      return (count < max && match(given, at, step, again)) || (count >= min && then(at));
    };
    return round(0, from);
  },
});

const character = fc
  .constantFrom(...(['a a', 'b b', '- -', '[ab] ab', '[a-] a-', '[b-] b-', '. abc-!'] as const))
  .map((pair) => one(pair.split(' ') as [string, string]));
const sign = fc.constantFrom(
  ['*', 0, N],
  ['+', 1, N],
  ['?', 0, 1],
  ['{1,3}', 1, 3],
  ['{0,4}', 0, 4],
  ['{2}', 2, 2],
  ['{2,}', 2, N],
);
const { pattern } = fc.letrec<{ part: Matcher; pattern: Matcher }>((tie) => ({
  pattern: fc.array(tie('part'), { minLength: 1, maxLength: 4 }).map(inOrder),
  part: fc.oneof(
    { maxDepth: 3 },
    character,
    fc.tuple(character, sign).map(([part, times]) => repeated(part, times as [string, number, number])),
    fc.array(tie('pattern'), { minLength: 1, maxLength: 3 }).map(oneOf),
    fc.tuple(tie('pattern'), sign).map(([part, times]) => repeated(oneOf([part]), times as [string, number, number])),
    // A group that is likely to be accepted.
    fc
      .tuple(tie('pattern'), sign)
      .map(([part, times]) => repeated(oneOf([inOrder([one(['c', 'c']), part])]), times as [string, number, number])),
  ),
}));
const text = fc
  .tuple(
    fc.string({ unit: fc.constantFrom('a', 'b', '-', 'c'), maxLength: 6 }),
    fc.string({ unit: fc.constantFrom('a', 'b', '-', 'c'), minLength: 1, maxLength: 4 }),
  )
  .map(([start, unit]) => `${start}${unit.repeat(20)}`.slice(0, 24));

test('a match stays within the step count of its pattern', () => {
  let taken = 0;
  fc.assert(
    fc.property(pattern, fc.boolean(), fc.array(text, { minLength: 8, maxLength: 8 }), (matcher, isAnchored, texts) => {
      const source = `${isAnchored ? '^' : ''}${matcher.text}$`;
      if (checkPattern(source) !== undefined) return;
      taken++;
      for (const given of texts) {
        const most = stepsOf(retriesOf(source), given.length + 1) * source.length * 2;
        if (most > 1e6) continue;
        let steps = 0;
        const step = () => assert.ok(++steps <= most, `${source} on ${given} takes more than ${most} steps`);
        for (let from = 0; from <= (isAnchored ? 0 : given.length); from++)
          matcher.match(`${given}!`, from, step, (at) => at > given.length);
      }
    }),
    { numRuns: 1500, seed: 7 },
  );
  assert.ok(taken > 300, `${taken} patterns are accepted`);
});
