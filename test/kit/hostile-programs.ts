/**
 * Bodies of programs that want to hold or break the server, and what may become of each; `ended` is a failure of the program
 * itself.
 */
export const hostilePrograms: readonly [name: string, body: string, ends: RegExp][] = [
  ['a loop', 'while (true) {}', /time/],
  ['a loop of jobs', 'for (;;) await 0', /time/],
  ['a loop of then', 'const f = () => Promise.resolve().then(f); await f()', /time/],
  ['recursion', 'const f = () => f() + 1; f()', /ended/],
  ['recursion in finally', 'const f = () => { try { f() } finally { f() } }; f()', /ended|time/],
  ['deep JSON', 'JSON.parse("[".repeat(200000) + "]".repeat(200000))', /ended|waits/],
  ['a pattern', '/^(a+)+$/.test("a".repeat(40) + "b")', /time/],
  ['a large number', 'const a = 3n ** 5000000n; a * a', /ended|time|memory/],
  ['a long text', '"a".repeat(2 ** 29).length', /ended|memory/],
  ['a long list', 'new Array(4e8).fill(1)', /memory|ended|time/],
  ['a sort', 'Array.from({ length: 3000000 }, (_, n) => -n).sort()', /memory|time|ended/],
  ['a join', 'const m = "x".repeat(1048576); new Array(100000).fill(m).join()', /memory|ended|time/],
  ['a list of lists', 'let a = []; for (;;) a = [a, a, new Array(1000).fill(a)]', /memory|time/],
  [
    'arrays in a function that nobody awaits',
    '(async () => { const a = []; for (;;) a.push(new Uint8Array(1e6)) })(); await agent("x")',
    /memory/,
  ],
  [
    'a proxy',
    'const p = new Proxy({}, { get: (t, k, r) => r[k] }); try { p.x } catch {} for (;;) { try { p.x } catch {} }',
    /time/,
  ],
  ['a sparse list', 'const a = []; a.length = 4294967295; a.indexOf(3)', /time/],
  ['a caught loop', 'for (;;) try { for (;;); } catch {}', /time/],
  ['parentheses', '('.repeat(90_000), /crash|ended/],
  ['lines of the log', 'for (let n = 0; n < 1e6; n++) log("line " + n); await agent("x")', /waits|time/],
  ['calls', 'for (let n = 0; n < 1e6; n++) agent("x")', /ended/],
  [
    'deep arguments',
    'let a = {}; for (let n = 0; n < 1e5; n++) a = { a }; await agent("x", { schema: a })',
    /ended|crash/,
  ],
  [
    'an end in an end',
    'Object.defineProperty(Object.prototype, "then", { get() { return () => {} } }); await agent("x")',
    /waits|ended/,
  ],
]
