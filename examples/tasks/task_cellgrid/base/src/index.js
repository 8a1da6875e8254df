'use strict';

const fs = require('node:fs');
const path = require('node:path');

// Modules are loaded on first use, so that a part of the package works without the others.
for (const file of fs.readdirSync(__dirname).sort()) {
  const name = path.basename(file, '.js');
  if (file.endsWith('.js') && name !== 'index') {
    Object.defineProperty(module.exports, name, {
      enumerable: true,
      get: () => require(path.join(__dirname, file)),
    });
  }
}
