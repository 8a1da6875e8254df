'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const load = (name) => require(path.join(process.cwd(), 'src', name));
const { CellError, FormulaError } = load('errors');
const { GENERAL, formatValue, roundTo } = load('format');

test('number-format: rounding follows the decimal digits', () => {
  assert.equal(roundTo(1.005, 2), 1.01);
  assert.equal(roundTo(2.5, 0), 3);
  assert.equal(roundTo(-2.5, 0), -3);
  assert.equal(roundTo(1e-9, 2), 0);
  assert.equal(roundTo(1e21, 2), 1e21);
});

test('number-format: rounding to tens and hundreds', () => {
  assert.equal(roundTo(1250, -2), 1300);
  assert.equal(roundTo(-14, -1), -10);
});

test('number-format: General shows at most ten digits', () => {
  assert.equal(formatValue(0.1 + 0.2), '0.3');
  assert.equal(formatValue(1 / 3), '0.3333333333');
  assert.equal(formatValue(-12), '-12');
  assert.equal(formatValue(1234567, GENERAL), '1234567');
});

test('number-format: what is no number is shown as it is, whatever the pattern', () => {
  assert.equal(formatValue(null, '0.00'), '');
  assert.equal(formatValue(true, '0.00'), 'TRUE');
  assert.equal(formatValue('x', '0.00'), 'x');
  assert.equal(formatValue(new CellError('#N/A'), '0.00'), '#N/A');
});

test('number-format: places, digits and groups', () => {
  assert.equal(formatValue(3.14159, '0.00'), '3.14');
  assert.equal(formatValue(7, '000'), '007');
  assert.equal(formatValue(1234567.891, '#,##0.0'), '1,234,567.9');
  assert.equal(formatValue(12, '#,##0'), '12');
  assert.equal(formatValue(999.995, '0.00'), '1000.00');
});

test('number-format: percent', () => {
  assert.equal(formatValue(0.256, '0%'), '26%');
  assert.equal(formatValue(0.285, '0.0%'), '28.5%');
});

test('number-format: negative numbers', () => {
  assert.equal(formatValue(-1234.5, '#,##0.00'), '-1,234.50');
  assert.equal(formatValue(-0.001, '0.00'), '0.00');
  assert.equal(formatValue(-5, '0;"("0")"'), '(5)');
  assert.equal(formatValue(5, '0;"("0")"'), '5');
});

test('number-format: texts before and after', () => {
  assert.equal(formatValue(5, '"$"0.00'), '$5.00');
  assert.equal(formatValue(-5, '0.0" kg"'), '-5.0 kg');
});

test('number-format: wrong patterns are refused', () => {
  for (const pattern of ['', 'abc', '0.', '#', '0;0;0', '"x']) {
    assert.throws(() => formatValue(1, pattern), FormulaError, pattern);
  }
});
