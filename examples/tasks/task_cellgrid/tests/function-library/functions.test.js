'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { CellError, isError } = load('errors');
const { evaluate } = load('evaluate');
const { loadFunctions } = load('functions');
const { parseFormula } = load('parser');

const CELLS = {
  A1: 4, A2: 1, A3: 'text', A4: true, A6: 3,
  B1: 'apple', B2: 'Pear', B3: 'fig', C1: 10, C2: 20, C3: 30,
  E1: new CellError('#N/A'),
};

function value(formula) {
  const context = { cell: (key) => CELLS[key] ?? null, functions: loadFunctions() };
  const result = evaluate(parseFormula(formula), context);
  return isError(result) ? result.code : result;
}

test('function-library: all functions are registered', () => {
  const names =
    'ABS AND AVERAGE CONCAT COUNT IF IFERROR ISERROR LEFT LEN LOOKUP LOWER MAX MEDIAN MIN MOD NOT OR ' +
    'PRODUCT RIGHT ROUND SQRT SUM TRIM UPPER';
  assert.deepEqual([...loadFunctions().keys()].sort(), names.split(' '));
});

test('function-library: of ranges only the numbers count', () => {
  assert.equal(value('=SUM(A1:A6)'), 8);
  assert.equal(value('=SUM(A1:A6,"2",TRUE)'), 11);
  assert.equal(value('=SUM("x")'), '#VALUE!');
  assert.equal(value('=COUNT(A1:A6,"2",5)'), 4);
  assert.equal(value('=PRODUCT(A1:A6)'), 12);
});

test('function-library: smallest, largest, average, median', () => {
  assert.equal(value('=MIN(A1:A6,7)'), 1);
  assert.equal(value('=MAX(A1:A6)'), 4);
  assert.equal(value('=AVERAGE(A1:A2)'), 2.5);
  assert.equal(value('=MEDIAN(A1:A6)'), 3);
  assert.equal(value('=MEDIAN(A1:A6,9)'), 3.5);
});

test('function-library: of nothing', () => {
  assert.equal(value('=SUM(Z1:Z9)'), 0);
  assert.equal(value('=MAX(Z1:Z9)'), 0);
  assert.equal(value('=AVERAGE(Z1:Z9)'), '#DIV/0!');
  assert.equal(value('=MEDIAN(Z1:Z9)'), '#NUM!');
});

test('function-library: functions of single numbers', () => {
  assert.equal(value('=ABS(-3)'), 3);
  assert.equal(value('=SQRT(16)'), 4);
  assert.equal(value('=SQRT(-1)'), '#NUM!');
  assert.equal(value('=ROUND(1.005,2)'), 1.01);
  assert.equal(value('=ROUND(-2.5)'), -3);
  assert.equal(value('=ROUND(1250,-2)'), 1300);
  assert.equal(value('=MOD(-7,3)'), 2);
  assert.equal(value('=MOD(7,0)'), '#DIV/0!');
  assert.equal(value('=ABS(A1:A2)'), '#VALUE!');
});

test('function-library: IF computes only the side that it takes', () => {
  assert.equal(value('=IF(A1>1,"big",1/0)'), 'big');
  assert.equal(value('=IF(A1<1,1/0)'), false);
  assert.equal(value('=IF("maybe",1,2)'), '#VALUE!');
  assert.equal(value('=IF(E1,1,2)'), '#N/A');
});

test('function-library: errors can be caught', () => {
  assert.equal(value('=IFERROR(1/0,"none")'), 'none');
  assert.equal(value('=IFERROR(A1,1/0)'), 4);
  assert.equal(value('=ISERROR(E1)'), true);
  assert.equal(value('=ISERROR(A1)'), false);
});

test('function-library: AND and OR stop when it is decided', () => {
  assert.equal(value('=AND(TRUE,1,"true")'), true);
  assert.equal(value('=AND(FALSE,1/0)'), false);
  assert.equal(value('=AND(1/0,FALSE)'), '#DIV/0!');
  assert.equal(value('=OR(0,A1:A2,1/0)'), true);
  assert.equal(value('=OR(0,FALSE)'), false);
  assert.equal(value('=NOT(0)'), true);
  assert.equal(value('=NOT("x")'), '#VALUE!');
});

test('function-library: LOOKUP finds the first equal key', () => {
  assert.equal(value('=LOOKUP("PEAR",B1:B3,C1:C3)'), 20);
  assert.equal(value('=LOOKUP("fig",B1:B3)'), 'fig');
  assert.equal(value('=LOOKUP("plum",B1:B3,C1:C3)'), '#N/A');
  assert.equal(value('=LOOKUP("fig",B1:B3,C1:C2)'), '#N/A');
  assert.equal(value('=LOOKUP(0,Z1:Z2)'), '#N/A');
});

test('function-library: texts', () => {
  assert.equal(value('=CONCAT("a",A1:A4,1.5)'), 'a41textTRUE1.5');
  assert.equal(value('=LEFT("straße",5)&LEFT("x")'), 'straßx');
  assert.equal(value('=RIGHT("abc",2)&RIGHT("abc",9)'), 'bcabc');
  assert.equal(value('=LEN("a😀")'), 2);
  assert.equal(value('=UPPER("ab")&LOWER("CD")'), 'ABcd');
  assert.equal(value('=TRIM("  a   b ")'), 'a b');
  assert.equal(value('=LEFT("abc",-1)'), '#VALUE!');
  assert.equal(value('=LEFT(123,2)'), '12');
});
