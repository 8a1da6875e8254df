'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { CellError, isError } = load('errors');
const { compare, evaluate, toBoolean, toNumber, toText } = load('evaluate');
const { parseFormula } = load('parser');

const CELLS = { A1: 2, A2: '3', A3: 'pear', A4: true, A5: new CellError('#N/A'), B1: 10 };

const FUNCTIONS = new Map([
  ['COUNTALL', { min: 1, max: Infinity, run: (...args) => args.flat(2).length }],
  ['PICK', { min: 2, max: 3, lazy: true, run: (n, a, b = () => null) => (n() ? a() : b()) }],
  ['HUGE', { min: 0, max: 0, run: () => Infinity }],
  ['FIRST', { min: 1, max: 1, run: (rows) => rows[0][0] }],
]);

function value(formula) {
  const context = { cell: (key) => CELLS[key] ?? null, functions: FUNCTIONS };
  const result = evaluate(parseFormula(formula), context);
  return isError(result) ? result.code : result;
}

test('formula-eval: arithmetic', () => {
  assert.equal(value('=1+2*3-4/2'), 5);
  assert.equal(value('=2^3^2'), 512);
  assert.equal(value('=-2^2'), -4);
  assert.equal(value('=50%*4'), 2);
});

test('formula-eval: cells are read by name', () => {
  assert.equal(value('=$A$1*B1'), 20);
  assert.equal(value('=Z9'), null);
  assert.equal(value('=Z9+1'), 1);
});

test('formula-eval: values become numbers where numbers are needed', () => {
  assert.equal(value('=A2+1'), 4);
  assert.equal(value('=A4+1'), 2);
  assert.equal(value('=" 1.5e1 "*2'), 30);
  assert.equal(value('=A3+1'), '#VALUE!');
  assert.equal(value('=""+1'), '#VALUE!');
  assert.equal(value('=-A2'), -3);
});

test('formula-eval: texts are joined', () => {
  assert.equal(value('="a"&1.5&A4&Z9'), 'a1.5TRUE');
});

test('formula-eval: comparison is by kind, then by value, texts in any case', () => {
  assert.equal(value('=1<2'), true);
  assert.equal(value('="PEAR"=A3'), true);
  assert.equal(value('="b">"A"'), true);
  assert.equal(value('=99<"a"'), true);
  assert.equal(value('="z"<FALSE'), true);
  assert.equal(value('=1="1"'), false);
  assert.equal(value('=1<>1'), false);
});

test('formula-eval: an empty cell equals every empty value', () => {
  assert.equal(value('=Z9=0'), true);
  assert.equal(value('=Z9=""'), true);
  assert.equal(value('=Z9=FALSE'), true);
  assert.equal(value('=Z9=Z8'), true);
  assert.equal(value('=Z9<1'), true);
});

test('formula-eval: errors arise', () => {
  assert.equal(value('=1/0'), '#DIV/0!');
  assert.equal(value('=1/Z9'), '#DIV/0!');
  assert.equal(value('=10^400'), '#NUM!');
  assert.equal(value('=(-8)^0.5'), '#NUM!');
  assert.equal(value('=HUGE()'), '#NUM!');
});

test('formula-eval: errors infect, the left one first', () => {
  assert.equal(value('=A5+1'), '#N/A');
  assert.equal(value('=1/0&A5'), '#DIV/0!');
  assert.equal(value('=A5=A5'), '#N/A');
  assert.equal(value('=-(#REF!%)'), '#REF!');
  assert.equal(value('=COUNTALL(1,A1:A5)'), '#N/A');
});

test('formula-eval: functions are known by name and count their arguments', () => {
  assert.equal(value('=COUNTALL(A1:B4,7)'), 9);
  assert.equal(value('=NOSUCH(1)'), '#NAME?');
  assert.equal(value('=COUNTALL()'), '#VALUE!');
  assert.equal(value('=PICK(1,2,3,4)'), '#VALUE!');
  assert.equal(value('=FIRST(A1:B2)'), 2);
});

test('formula-eval: lazy functions compute what they want', () => {
  assert.equal(value('=PICK(A1,"yes",1/0)'), 'yes');
  assert.equal(value('=PICK(Z9,1/0)'), null);
  assert.equal(value('=PICK(Z9,1,A5)'), '#N/A');
});

test('formula-eval: a range is no value unless it is one cell', () => {
  assert.equal(value('=A1:A1+1'), 3);
  assert.equal(value('=A1:A2+1'), '#VALUE!');
  assert.equal(value('=A1:A2'), '#VALUE!');
});

test('formula-eval: conversions for functions', () => {
  assert.deepEqual([null, true, '7', 2].map(toNumber), [0, 1, 7, 2]);
  assert.equal(toNumber('x').code, '#VALUE!');
  assert.deepEqual([null, false, 1.5, 'x'].map(toText), ['', 'FALSE', '1.5', 'x']);
  assert.deepEqual(['true', 'FALSE', 2, null, '0'].map(toBoolean), [true, false, true, false, false]);
  assert.equal(toBoolean('maybe').code, '#VALUE!');
  assert.equal(toNumber(CELLS.A5), CELLS.A5);
  assert.ok(compare('a', 'B') < 0 && compare(2, 1) > 0 && compare(null, 0) === 0);
});
