'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { FormulaError } = load('errors');
const refs = load('refs');

test('cell-refs: column names count on after Z', () => {
  const names = [0, 25, 26, 51, 52, 701, 702, 16383].map(refs.columnName);
  assert.deepEqual(names, ['A', 'Z', 'AA', 'AZ', 'BA', 'ZZ', 'AAA', 'XFD']);
});

test('cell-refs: column names read back in any case', () => {
  for (const index of [0, 25, 26, 701, 702, 16383]) {
    assert.equal(refs.columnIndex(refs.columnName(index).toLowerCase()), index);
  }
});

test('cell-refs: a reference has a place and says what is fixed', () => {
  assert.deepEqual({ ...refs.parseRef('b3') }, { column: 1, row: 2, columnFixed: false, rowFixed: false });
  assert.deepEqual({ ...refs.parseRef('$C$1') }, { column: 2, row: 0, columnFixed: true, rowFixed: true });
  assert.equal(refs.parseRef('A$7').rowFixed, true);
  assert.equal(refs.parseRef('XFD1048576').row, 1048575);
});

test('cell-refs: what is no reference is refused', () => {
  for (const text of ['', 'A', '7', 'A0', 'A01', 'AAAA1', 'XFE1', 'A1048577', 'A1:B2', ' A1', '$$A1']) {
    assert.throws(() => refs.parseRef(text), FormulaError, text);
  }
});

test('cell-refs: references are written as they were read, keys without dollar signs', () => {
  for (const text of ['A1', '$B2', 'C$3', '$AA$10']) {
    assert.equal(refs.formatRef(refs.parseRef(text)), text);
  }
  assert.equal(refs.keyOf(refs.parseRef('$aa$10')), 'AA10');
});

test('cell-refs: a range is turned so that it begins at its upper left', () => {
  const { from, to } = refs.parseRange('C1:A3');
  assert.deepEqual([refs.keyOf(from), refs.keyOf(to)], ['A1', 'C3']);
  const turned = refs.parseRange('$C1:A$3');
  assert.deepEqual([refs.formatRef(turned.from), refs.formatRef(turned.to)], ['A1', '$C$3']);
});

test('cell-refs: a range has a size and cells row by row', () => {
  const range = refs.parseRange('B2:C4');
  assert.deepEqual(refs.sizeOf(range), { columns: 2, rows: 3 });
  assert.deepEqual(refs.keysOf(range), [['B2', 'C2'], ['B3', 'C3'], ['B4', 'C4']]);
});

test('cell-refs: one cell is a range too, three are not', () => {
  assert.deepEqual(refs.keysOf(refs.parseRange('D4')), [['D4']]);
  assert.throws(() => refs.parseRange('A1:B2:C3'), FormulaError);
  assert.throws(() => refs.parseRange('A1:'), FormulaError);
});
