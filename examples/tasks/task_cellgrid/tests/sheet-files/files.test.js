'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { FormulaError } = load('errors');
const { exportCsv, importCsv, parseCsv, renderText } = load('files');
const { Sheet } = load('sheet');

function sheetOf(inputs) {
  const sheet = new Sheet();
  sheet.setAll(inputs);
  return sheet;
}

test('sheet-files: CSV rows, with either line end and with or without a last one', () => {
  assert.deepEqual(parseCsv('a,b\r\nc,d\n'), [['a', 'b'], ['c', 'd']]);
  assert.deepEqual(parseCsv('a\nb'), [['a'], ['b']]);
  assert.deepEqual(parseCsv(''), []);
});

test('sheet-files: CSV fields may be empty or quoted', () => {
  assert.deepEqual(parseCsv(',x,\n"a,""b""\nc",d\n'), [['', 'x', ''], ['a,"b"\nc', 'd']]);
  assert.deepEqual(parseCsv('\n""\n'), [[''], ['']]);
});

test('sheet-files: malformed CSV is refused with its position', () => {
  for (const [text, position] of [['ok,a"b', 3], ['"open', 0], ['"a"b,c', 0]]) {
    assert.throws(() => parseCsv(text), (e) => e instanceof FormulaError && e.position === position, text);
  }
});

test('sheet-files: importing puts fields in as if they were typed', () => {
  const sheet = sheetOf({ B2: 'old', A1: 'kept' });
  importCsv(sheet, '1,2\n,=B2+C2\n', 'B2');
  assert.deepEqual(sheet.names(), ['A1', 'B2', 'C2', 'C3']);
  assert.equal(sheet.get('C3'), 3);
});

test('sheet-files: importing is one change', () => {
  const sheet = sheetOf({});
  let times = 0;
  sheet.subscribe(() => (times += 1));
  importCsv(sheet, '1,2\n3,4\n');
  assert.equal(times, 1);
});

test('sheet-files: exporting shows values, from A1 on', () => {
  const sheet = sheetOf({ B1: '=1/4', A3: 'a "b", c', B3: '=1/0' });
  assert.equal(exportCsv(sheet), ',0.25\n,\n"a ""b"", c",#DIV/0!\n');
  assert.equal(exportCsv(sheet, { formats: { B1: '0%' } }), ',25%\n,\n"a ""b"", c",#DIV/0!\n');
  assert.equal(exportCsv(sheetOf({})), '');
});

test('sheet-files: exported formulas can be imported again', () => {
  const sheet = sheetOf({ A1: "'007", A2: '=B1&","', B1: 5 });
  const text = exportCsv(sheet, { formulas: true });
  assert.equal(text, '\'007,5\n"=B1&"",""",\n');
  const again = sheetOf({});
  importCsv(again, text);
  assert.deepEqual(['A1', 'A2', 'B1'].map((n) => again.get(n)), ['007', '5,', 5]);
});

test('sheet-files: the sheet as text', () => {
  const sheet = sheetOf({ A1: 'item', B1: 'price', A2: 'pear', B2: 1.5, B10: '=B2*1000', C2: 'x' });
  assert.equal(
    renderText(sheet, { formats: { B2: '0.00', B10: '#,##0.00' } }),
    [
      '   | A    | B        | C',
      ' 1 | item | price    |',
      ' 2 | pear |     1.50 | x',
      ...[3, 4, 5, 6, 7, 8, 9].map((row) => ` ${row} |      |          |`),
      '10 |      | 1,500.00 |',
      '',
    ].join('\n'),
  );
});
