'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { FormulaError } = load('errors');
const { Sheet } = load('sheet');

function counting() {
  const calls = [];
  const functions = new Map([
    ['SEE', { min: 2, max: 2, run: (label, value) => (calls.push(label), value) }],
  ]);
  return { sheet: new Sheet({ functions }), calls };
}

test('reactive-sheet: inputs are read as a person means them', () => {
  const sheet = new Sheet();
  sheet.setAll({ A1: '1.5', A2: ' -2e1 ', A3: 'true', A4: "'007", A5: 'pear', A6: 7, A7: false });
  const values = ['A1', 'A2', 'A3', 'A4', 'A5', 'A6', 'A7', 'A8'].map((name) => sheet.get(name));
  assert.deepEqual(values, [1.5, -20, true, '007', 'pear', 7, false, null]);
});

test('reactive-sheet: inputs are kept for editing', () => {
  const sheet = new Sheet();
  sheet.setAll({ A1: '=1+1', A2: "'007", A3: 7, A4: true });
  assert.deepEqual(['A1', 'A2', 'A3', 'A4', 'A5'].map((n) => sheet.input(n)), ['=1+1', "'007", '7', 'TRUE', '']);
});

test('reactive-sheet: formulas follow their cells', () => {
  const sheet = new Sheet();
  sheet.setAll({ B1: '=A1*2', B2: '=B1+$A$1' });
  assert.equal(sheet.get('b2'), 0);
  sheet.set('a1', 5);
  assert.deepEqual([sheet.get('B1'), sheet.get('$B$2')], [10, 15]);
  sheet.set('B1', '1');
  assert.equal(sheet.get('B2'), 6);
});

test('reactive-sheet: clearing a cell empties it for others', () => {
  const sheet = new Sheet();
  sheet.setAll({ A1: 5, A2: '=A1&"!"' });
  sheet.set('A1', '');
  assert.deepEqual([sheet.get('A1'), sheet.get('A2')], [null, '!']);
  sheet.set('A2', null);
  assert.deepEqual(sheet.names(), []);
});

test('reactive-sheet: only what a change reaches is computed, once', () => {
  const { sheet, calls } = counting();
  sheet.setAll({
    A1: 1,
    B1: '=SEE("b",A1)',
    C1: '=SEE("c",A1)',
    D1: '=SEE("d",B1+C1)',
    E1: '=SEE("e",7)',
  });
  assert.equal(sheet.get('D1'), 2);
  assert.deepEqual([...calls].sort(), ['b', 'c', 'd', 'e']);
  calls.length = 0;
  sheet.set('A1', 10);
  assert.equal(sheet.get('D1'), 20);
  assert.deepEqual([...calls].sort(), ['b', 'c', 'd']);
});

test('reactive-sheet: listeners hear what changed, in place order', () => {
  const sheet = new Sheet();
  sheet.setAll({ B2: '=A1+1', A2: '=B2>5', C1: 'x' });
  const heard = [];
  const stop = sheet.subscribe((changes) => heard.push(changes));
  sheet.set('A1', 3);
  sheet.set('A1', 3);
  stop();
  sheet.set('A1', 9);
  assert.deepEqual(heard, [
    [
      { name: 'A1', before: null, after: 3 },
      { name: 'B2', before: 1, after: 4 },
    ],
  ]);
});

test('reactive-sheet: a batch is computed and reported once', () => {
  const { sheet, calls } = counting();
  const heard = [];
  sheet.set('B1', '=SEE("b",A1+A2)');
  sheet.subscribe((changes) => heard.push(changes.map((change) => change.name)));
  calls.length = 0;
  const result = sheet.batch(() => {
    sheet.set('A1', 1);
    sheet.batch(() => sheet.set('A2', 2));
    sheet.set('A1', 3);
    return 'done';
  });
  assert.deepEqual([result, sheet.get('B1'), calls.length], ['done', 5, 1]);
  assert.deepEqual(heard, [['A1', 'B1', 'A2']]);
});

test('reactive-sheet: a batch that fails still leaves a computed sheet', () => {
  const sheet = new Sheet();
  sheet.set('B1', '=A1');
  assert.throws(() =>
    sheet.batch(() => {
      sheet.set('A1', 4);
      throw new Error('stop');
    }),
  );
  assert.equal(sheet.get('B1'), 4);
});

test('reactive-sheet: cycles are errors and can be mended', () => {
  const sheet = new Sheet();
  sheet.setAll({ A1: '=B1', B1: '=C1+1', C1: '=A1', D1: '=A1&"x"', E1: '=E1' });
  const codes = ['A1', 'B1', 'C1', 'D1', 'E1'].map((name) => String(sheet.get(name)));
  assert.deepEqual(codes, Array(5).fill('#CYCLE!'));
  sheet.setAll({ C1: 1, E1: 2 });
  assert.deepEqual(['A1', 'B1', 'D1', 'E1'].map((n) => sheet.get(n)), [2, 2, '2x', 2]);
});

test('reactive-sheet: what cannot be read is an error in the cell, not in the program', () => {
  const sheet = new Sheet();
  sheet.setAll({ A1: '=1+', A2: '=A1+1' });
  assert.deepEqual([String(sheet.get('A1')), String(sheet.get('A2'))], ['#PARSE!', '#PARSE!']);
  assert.equal(sheet.input('A1'), '=1+');
});

test('reactive-sheet: a wrong name changes nothing', () => {
  const sheet = new Sheet();
  assert.throws(() => sheet.setAll({ A1: 1, nonsense: 2 }), FormulaError);
  assert.deepEqual(sheet.names(), []);
});

test('reactive-sheet: names are in order of rows, then columns', () => {
  const sheet = new Sheet();
  sheet.setAll({ AA1: 1, B1: 1, A10: 1, A2: 1 });
  assert.deepEqual(sheet.names(), ['B1', 'AA1', 'A2', 'A10']);
});
