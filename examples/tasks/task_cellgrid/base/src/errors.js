'use strict';

/** Malformed text: a reference, a formula, a pattern. `position` is its 0-based offset, if known. */
class FormulaError extends Error {
  constructor(message, position = null) {
    super(message);
    this.name = 'FormulaError';
    this.position = position;
  }
}

/** What a cell holds when it could not be computed. It infects what is computed from it. */
class CellError {
  constructor(code, detail = '') {
    this.code = code;
    this.detail = detail;
    Object.freeze(this);
  }

  toString() {
    return this.code;
  }
}

const CODES = ['#CYCLE!', '#DIV/0!', '#N/A', '#NAME?', '#NUM!', '#PARSE!', '#REF!', '#VALUE!'];

const isError = (value) => value instanceof CellError;

module.exports = { CODES, CellError, FormulaError, isError };
