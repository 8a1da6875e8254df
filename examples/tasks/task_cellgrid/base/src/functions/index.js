'use strict';

const fs = require('node:fs');
const path = require('node:path');

/**
 * All worksheet functions by upper-case name. Every other module of this folder exports an object of
 * them: `{ NAME: { min, max, lazy, run } }`. `min` and `max` bound the number of arguments (`max` may
 * be Infinity), `run` computes the value; how it is called is the evaluator's business.
 */
function loadFunctions() {
  const found = new Map();
  for (const file of fs.readdirSync(__dirname).sort()) {
    if (file.endsWith('.js') && file !== 'index.js') {
      for (const [name, entry] of Object.entries(require(path.join(__dirname, file)))) {
        found.set(name.toUpperCase(), entry);
      }
    }
  }
  return found;
}

module.exports = { loadFunctions };
