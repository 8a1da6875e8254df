'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { FormulaError } = load('errors');
const { parseFormula, referencedKeys } = load('parser');

/** The tree as a fully parenthesised text. */
function shape(tree) {
  switch (tree.type) {
    case 'number':
    case 'boolean':
      return String(tree.value);
    case 'string':
      return JSON.stringify(tree.value);
    case 'error':
      return tree.code;
    case 'ref':
      return `ref(${tree.ref.column},${tree.ref.row})`;
    case 'range':
      return `range(${tree.range.from.column},${tree.range.from.row},${tree.range.to.column},${tree.range.to.row})`;
    case 'call':
      return `${tree.name}(${tree.arguments.map(shape).join(' ')})`;
    case 'percent':
      return `[${shape(tree.argument)} %]`;
    case 'unary':
      return `[${tree.operator} ${shape(tree.argument)}]`;
    default:
      return `[${shape(tree.left)} ${tree.operator} ${shape(tree.right)}]`;
  }
}

const parsed = (text) => shape(parseFormula(text));

test('formula-parser: constants', () => {
  assert.equal(parsed('=1.5'), '1.5');
  assert.equal(parsed('.5e2'), '50');
  assert.equal(parsed('="say ""hi"""'), '"say \\"hi\\""');
  assert.equal(parsed('true'), 'true');
  assert.equal(parsed('=#div/0!'), '#DIV/0!');
});

test('formula-parser: references and ranges', () => {
  assert.equal(parsed('=$b$2'), 'ref(1,1)');
  assert.equal(parsed('=C3:A1'), 'range(0,0,2,2)');
  assert.equal(parseFormula('=$A1').ref.columnFixed, true);
});

test('formula-parser: multiplication binds tighter than addition, comparison loosest', () => {
  assert.equal(parsed('=1+2*3=7'), '[[1 + [2 * 3]] = 7]');
  assert.equal(parsed('="a"&1+2'), '["a" & [1 + 2]]');
  assert.equal(parsed('=1<2<>true'), '[[1 < 2] <> true]');
});

test('formula-parser: operators group to the left, powers to the right', () => {
  assert.equal(parsed('=8-4-2'), '[[8 - 4] - 2]');
  assert.equal(parsed('=8/4*2'), '[[8 / 4] * 2]');
  assert.equal(parsed('=2^3^2'), '[2 ^ [3 ^ 2]]');
});

test('formula-parser: signs and percent', () => {
  assert.equal(parsed('=-2^2'), '[- [2 ^ 2]]');
  assert.equal(parsed('=2^-1'), '[2 ^ [- 1]]');
  assert.equal(parsed('=--A1'), '[- [- ref(0,0)]]');
  assert.equal(parsed('=-5%*+2'), '[[- [5 %]] * [+ 2]]');
  assert.equal(parsed('=50%%'), '[[50 %] %]');
});

test('formula-parser: parentheses and blanks', () => {
  assert.equal(parsed('= ( 1 + 2 ) * 3 '), '[[1 + 2] * 3]');
  assert.equal(parsed('=((1))'), '1');
});

test('formula-parser: calls', () => {
  assert.equal(parsed('=sum(A1:A2, 3)'), 'SUM(range(0,0,0,1) 3)');
  assert.equal(parsed('=now()'), 'NOW()');
  assert.equal(parsed('=LOG10(2)+AB1'), '[LOG10(2) + ref(27,0)]');
  assert.equal(parsed('=if(a1>1,"x",f(2))'), 'IF([ref(0,0) > 1] "x" F(2))');
});

test('formula-parser: errors have a position in the text as given', () => {
  const cases = [
    ['=', 1],
    ['=1+', 3],
    ['=1 2', 3],
    ['=(1', 3],
    ['=SUM(1,', 7],
    ['=SUM(1 2)', 7],
    ['=A1:', 4],
    ['=A1:3', 4],
    ['="abc', 1],
    ['=1+?', 3],
    ['=1+foo', 3],
    ['=)', 1],
    ['=1+XFE1', 3],
    ['1+', 2],
  ];
  for (const [text, position] of cases) {
    assert.throws(
      () => parseFormula(text),
      (error) => error instanceof FormulaError && error.position === position,
      text,
    );
  }
});

test('formula-parser: the cells that a formula mentions', () => {
  const keys = (text) => referencedKeys(parseFormula(text));
  assert.deepEqual(keys('=B2+$A$1*B2'), ['B2', 'A1']);
  assert.deepEqual(keys('=-SUM(A1:B2,C1)%'), ['A1', 'B1', 'A2', 'B2', 'C1']);
  assert.deepEqual(keys('=1+2'), []);
});
