'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');

const { DependencyGraph } = require(path.join(process.cwd(), 'src', 'graph'));

function graphOf(edges) {
  const graph = new DependencyGraph();
  for (const [node, dependencies] of Object.entries(edges)) {
    graph.set(node, dependencies);
  }
  return graph;
}

test('dependency-graph: knows both directions', () => {
  const graph = graphOf({ c: ['b', 'a'], d: ['a', 'a'] });
  assert.deepEqual(graph.dependenciesOf('c'), ['a', 'b']);
  assert.deepEqual(graph.dependentsOf('a'), ['c', 'd']);
  assert.deepEqual(graph.dependenciesOf('a'), []);
  assert.deepEqual(graph.dependentsOf('nobody'), []);
});

test('dependency-graph: setting again replaces', () => {
  const graph = graphOf({ c: ['a'] });
  graph.set('c', ['b']);
  assert.deepEqual(graph.dependentsOf('a'), []);
  assert.deepEqual(graph.dependentsOf('b'), ['c']);
});

test('dependency-graph: a removed node still has dependents', () => {
  const graph = graphOf({ b: ['a'], c: ['b'] });
  graph.remove('b');
  assert.deepEqual(graph.dependentsOf('a'), []);
  assert.deepEqual(graph.dependentsOf('b'), ['c']);
});

test('dependency-graph: a plan holds what a change reaches and nothing else', () => {
  const graph = graphOf({ b: ['a'], c: ['b'], x: ['y'] });
  assert.deepEqual(graph.plan(['a']).order, ['a', 'b', 'c']);
  assert.deepEqual(graph.plan(['b']).order, ['b', 'c']);
  assert.deepEqual(graph.plan(['c', 'c']).order, ['c']);
  assert.deepEqual(graph.plan([]).order, []);
});

test('dependency-graph: everything comes after what it depends on', () => {
  const edges = { b: ['a'], c: ['a', 'b'], d: ['c'], e: ['b', 'd'], f: ['a', 'e'], g: ['z', 'f'] };
  const { order, cyclic } = graphOf(edges).plan(['z', 'a']);
  assert.equal(order.length, 8);
  for (const [node, dependencies] of Object.entries(edges)) {
    for (const dependency of dependencies) {
      assert.ok(order.indexOf(dependency) < order.indexOf(node), `${dependency} before ${node}`);
    }
  }
  assert.equal(cyclic.size, 0);
});

test('dependency-graph: cycles are found, and what hangs on them is not one', () => {
  const graph = graphOf({ a: ['c'], b: ['a'], c: ['b'], d: ['c'], e: ['e'], f: ['d', 'e'] });
  const { order, cyclic } = graph.plan(['a', 'e']);
  assert.deepEqual([...cyclic].sort(), ['a', 'b', 'c', 'e']);
  assert.equal(new Set(order).size, 6);
  assert.ok(order.indexOf('d') > Math.max(...['a', 'b', 'c'].map((node) => order.indexOf(node))));
  assert.equal(order.at(-1), 'f');
});

test('dependency-graph: a broken cycle is none', () => {
  const graph = graphOf({ a: ['b'], b: ['a'] });
  graph.set('b', []);
  assert.equal(graph.plan(['b']).cyclic.size, 0);
});

test('dependency-graph: long chains need no deep stack', () => {
  const graph = new DependencyGraph();
  for (let index = 0; index < 20000; index += 1) {
    graph.set(`n${index + 1}`, [`n${index}`]);
  }
  const { order } = graph.plan(['n0']);
  assert.deepEqual([order.length, order[0], order.at(-1)], [20001, 'n0', 'n20000']);
});
