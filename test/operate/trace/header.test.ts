// The rules of W3C Trace Context: `traceparent` (3.2), `tracestate` (3.3), and how a request continues a trace (3.4).
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatTraceparent, parseTraceparent } from '../../../src/base/traceparent.ts';
import { parseTracestate } from '../../../src/operate/trace/tracestate.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('parseTraceparent', () => {
  const good: readonly (readonly [what: string, header: string, flags: number])[] = [
    ['the flags of an unsampled trace', `00-${TRACE}-${SPAN}-00`, 0],
    ['the flags of a sampled trace', `00-${TRACE}-${SPAN}-01`, 1],
    ['the random flag of Level 2', `00-${TRACE}-${SPAN}-03`, 3],
    ['reserved flags as zeros', `00-${TRACE}-${SPAN}-ff`, 3],
    ['a reserved flag alone', `00-${TRACE}-${SPAN}-fc`, 0],
    ['a later version of the same length', `cc-${TRACE}-${SPAN}-01`, 1],
    ['a later version with more fields', `01-${TRACE}-${SPAN}-01-what-the-future-brings`, 1],
    ['a later version that ends with its separator', `01-${TRACE}-${SPAN}-01-`, 1],
  ];
  for (const [what, header, flags] of good)
    it(`accepts ${what}`, () => assert.deepEqual(parseTraceparent(header), { traceId: TRACE, spanId: SPAN, flags }));

  const bad: readonly (readonly [what: string, header: string])[] = [
    ['an empty header', ''],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['a version in upper case', `CC-${TRACE}-${SPAN}-01`],
    ['a version of one digit', `0-${TRACE}-${SPAN}-01`],
    ['a version of three digits', `000-${TRACE}-${SPAN}-01`],
    ['a version that is no number', `.0-${TRACE}-${SPAN}-01`],
    ['version 00 with more fields', `00-${TRACE}-${SPAN}-01-more`],
    ['version 00 with a separator at its end', `00-${TRACE}-${SPAN}-01-`],
    ['a later version with text after its flags', `01-${TRACE}-${SPAN}-01.more`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a trace id in upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace id that is too short', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a trace id that is too long', `00-${TRACE}a-${SPAN}-01`],
    ['a trace id with another character', `00-.${TRACE.slice(1)}-${SPAN}-01`],
    ['a span id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a span id in upper case', `00-${TRACE}-${SPAN.toUpperCase()}-01`],
    ['a span id that is too short', `00-${TRACE}-${SPAN.slice(1)}-01`],
    ['a span id that is too long', `00-${TRACE}-${SPAN}a-01`],
    ['no flags', `00-${TRACE}-${SPAN}`],
    ['flags of one digit', `00-${TRACE}-${SPAN}-1`],
    ['flags of three digits', `00-${TRACE}-${SPAN}-001`],
    ['flags in upper case', `00-${TRACE}-${SPAN}-0F`],
    ['other separators', `00_${TRACE}_${SPAN}_01`],
    ['a space before the header', ` 00-${TRACE}-${SPAN}-01`],
    ['a space after the header', `00-${TRACE}-${SPAN}-01 `],
    ['two headers in one', `00-${TRACE}-${SPAN}-01,00-${TRACE}-${SPAN}-01`],
  ];
  for (const [what, header] of bad) it(`refuses ${what}`, () => assert.equal(parseTraceparent(header), undefined));

  it('reads what formatTraceparent writes', () => {
    const context = { traceId: TRACE, spanId: SPAN, flags: 3 };
    assert.deepEqual(parseTraceparent(formatTraceparent(context)), context);
    assert.equal(formatTraceparent(context), `00-${TRACE}-${SPAN}-03`);
  });
});

const members = (count: number, member = (i: number) => `k${i}=${i}`): string =>
  Array.from({ length: count }, (_, i) => member(i)).join(',');

describe('parseTracestate', () => {
  const rows: readonly (readonly [what: string, lines: readonly string[], list: string])[] = [
    ['a list', ['rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'], 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
    ['several header lines, in their order', ['a=1,b=2', 'c=3'], 'a=1,b=2,c=3'],
    ['white space around members', ['a=1 ,\t b=2'], 'a=1,b=2'],
    ['empty members', [',a=1,,b=2,', ''], 'a=1,b=2'],
    ['a list without members', [' , '], ''],
    ['a tenant', ['fw529a3039@dt=FfWq7'], 'fw529a3039@dt=FfWq7'],
    ['all characters of a key', ['a-z_0*/9=1'], 'a-z_0*/9=1'],
    ['all characters of a value', ['a= !"#$%&\'()*+-./:;<>?@[\\]^_`{|}~'], 'a= !"#$%&\'()*+-./:;<>?@[\\]^_`{|}~'],
    ['the longest key', [`${'z'.repeat(256)}=1`], `${'z'.repeat(256)}=1`],
    [
      'the longest tenant and system',
      [`${'t'.repeat(241)}@${'v'.repeat(14)}=1`],
      `${'t'.repeat(241)}@${'v'.repeat(14)}=1`,
    ],
    ['the longest value', [`a=${'1'.repeat(256)}`], `a=${'1'.repeat(256)}`],
    ['32 members', [members(32)], members(32)],
    ['33 members', [members(33)], ''],
    ['33 members in two lines', [members(32), 'z=1'], ''],
    ['a key twice', ['a=1,a=2'], ''],
    ['a key in upper case', ['FOO=1'], ''],
    ['a key that begins with a digit', ['1a=1'], ''],
    ['a key with a dot', ['foo.bar=1'], ''],
    ['a key that is too long', [`${'z'.repeat(257)}=1`], ''],
    ['a tenant that is too long', [`${'t'.repeat(242)}@v=1`], ''],
    ['a system that is too long', [`t@${'v'.repeat(15)}=1`], ''],
    ['a system that begins with a digit', ['t@1=1'], ''],
    ['a key with two systems', ['a@b@c=1'], ''],
    ['a key with nothing before @', ['@b=1'], ''],
    ['a key without a value', ['a='], ''],
    ['a member without =', ['a'], ''],
    ['a member without a key', ['=1'], ''],
    ['a value with =', ['a=1=2'], ''],
    ['a value that is too long', [`a=${'1'.repeat(257)}`], ''],
    ['a value with a tab', ['a=1\t2'], ''],
    ['a value with a character of Latin-1', ['a=\u00e9'], ''],
    ['blanks in a member, for which more than linear time would be hours', [`a${'\t'.repeat(2_000_000)}b`], ''],
    ['one bad member among good ones', ['a=1,B=2,c=3'], ''],
    [
      'a list of 512 characters',
      [`a=${'1'.repeat(252)},b=${'2'.repeat(255)}`],
      `a=${'1'.repeat(252)},b=${'2'.repeat(255)}`,
    ],
    [
      'a list of more than 512 characters without its last long member',
      [`a=${'1'.repeat(200)},b=2,c=${'3'.repeat(200)},d=${'4'.repeat(200)}`],
      `a=${'1'.repeat(200)},b=2,c=${'3'.repeat(200)}`,
    ],
    [
      'a list of more than 512 characters without its last member, if each has 128 at most',
      [`a=${'1'.repeat(126)},${members(4, (i) => `k${i}=${'2'.repeat(117)}`)}`],
      `a=${'1'.repeat(126)},${members(3, (i) => `k${i}=${'2'.repeat(117)}`)}`,
    ],
    [
      'a list of more than 512 characters in short members without its last members',
      [members(30, (i) => `k${i}=${'v'.repeat(20)}`)],
      members(20, (i) => `k${i}=${'v'.repeat(20)}`),
    ],
  ];
  for (const [what, lines, list] of rows)
    it(`${list === '' ? 'drops' : 'passes on'} ${what}`, () => assert.equal(parseTracestate(lines), list));
});
