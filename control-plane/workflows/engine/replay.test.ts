import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { assetUrl } from '../../../shared/lib/program-file.ts'
import { compileProgram } from './compile.ts'
import { createInstance } from './instance.ts'
import { replay } from './replay.ts'
import type { HandedResult, ReplayInput } from './words.ts'

const wasm = new WebAssembly.Module(readFileSync(assetUrl('quickjs.wasm')))
const meta = "export const meta = { name: 'x', title: 'X' };\n"

const play = async (body: string, more: Partial<ReplayInput> = {}) =>
  replay(await createInstance(wasm), {
    source: meta + body,
    input: '{"repo":"a/b"}',
    seed: 'flr_1',
    startedAt: 1_000,
    known: [],
    journalBytes: 0,
    results: [],
    ...more,
  })

/** Plays to the end: each round, all calls that wait come to what `answer` says, in the order given. */
async function playOn(
  body: string,
  answer: (prompt: string, seq: number) => unknown,
  order = (seqs: number[]) => seqs,
) {
  const known: string[] = []
  const prompts: string[] = []
  const results: HandedResult[] = []
  for (;;) {
    const replayed = await play(body, { known, results })
    if (replayed.kind !== 'replayed') return { replayed, prompts, known, results }
    for (const { args, digest } of replayed.calls) {
      known.push(digest)
      prompts.push(JSON.parse(args).prompt)
    }
    const waiting = known.map((_, seq) => seq).filter((seq) => !results.some((result) => result.seq === seq))
    if (replayed.end !== null || waiting.length === 0) return { replayed, prompts, known, results }
    for (const seq of order(waiting)) {
      const value = answer(prompts[seq]!, seq)
      const at = 2_000 + results.length
      if (value instanceof Error) {
        const failure = { message: value.message, code: 'failed', exitReason: 'error', runId: 'run_1' }
        results.push({ seq, at, isValue: false, text: JSON.stringify(failure) })
      } else results.push({ seq, at, isValue: true, text: JSON.stringify(value) })
    }
  }
}

describe('a program', () => {
  it('waits for its calls, and goes on with what they came to', async () => {
    const body = `const one = await agent('First', { label: 'a' })\nreturn 'got ' + one.text`
    expect(await play(body)).toMatchObject({
      kind: 'replayed',
      end: null,
      calls: [{ kind: 'agent', args: '{"label":"a","prompt":"First"}' }],
    })
    const { replayed } = await playOn(body, () => ({ text: 'it' }))
    expect(replayed).toMatchObject({ calls: [], end: { kind: 'returned', summary: 'got it' } })
  })

  it.each([
    ['return', null],
    ['return "text"', 'text'],
    ['return { a: [1, null] }', '{"a":[1,null]}'],
    ['return 7', '7'],
    ['return "x".repeat(20000)', 'x'.repeat(10_000)],
    ['return input.repo', 'a/b'],
  ])('ends with what it returns: %s', async (body, summary) => {
    expect(await play(body)).toMatchObject({ end: { kind: 'returned', summary } })
  })

  it.each([
    ['const a = 1\n\n  throw new Error("not good")', 'not good', 4, 13],
    ['throw "text"', 'text', null, null],
    ['null.x', "TypeError: cannot read property 'x' of null", 2, 1],
    ['fail("no " + 1)', 'no 1', 2, 14],
    ['fail()', 'The program failed and did not say why.', 2, 1],
    ['try { fail("once") } catch {}\nreturn 1', 'once', 2, 7],
    ['await parallel([() => fail("in a branch")])\nreturn 1', 'in a branch', 2, 23],
    ['Promise.reject(new Error("nobody"))\nawait agent("x")', 'nobody', 2, 20],
    ['Promise.reject(new Error("nobody"))\nreturn 1', 'nobody', 2, 20],
    [
      'agent("")\nawait null\nreturn 1',
      'TypeError: agent: prompt: Too small: expected string to have >=1 characters.',
      2,
      1,
    ],
    [
      'agent("x", { task: "MAI-4" })\nawait null\nreturn 1',
      'TypeError: agent: task: it can only be null. A step works on the task of its workflow run; start a workflow with the other task.',
      2,
      1,
    ],
    ['return 1n', 'TypeError: BigInt are forbidden in JSON.stringify', null, null],
  ])('fails with its message and the place: %s', async (body, message, line, column) => {
    expect(await play(body)).toMatchObject({ end: { kind: 'failed', message, line } })
    if (column !== null) expect(await play(body)).toMatchObject({ end: { column } })
  })

  it.each([
    ['const lost = Promise.reject(new Error("x"))\nPromise.resolve().then(() => lost.catch(() => null))\nreturn 1'],
    ['const later = async () => { for (let at = 0; at < 9; at++) await null; await agent("x") }\nlater()\nreturn 1'],
  ])('a rejection that is handled in the end, or that its return cuts off, fails nothing: %s', async (body) => {
    expect(await play(body)).toMatchObject({ end: { kind: 'returned', summary: '1' } })
  })

  it('gets a StepError where a step failed, and may go on', async () => {
    const body = `try { await agent('x') } catch (error) {
      return [error instanceof StepError, error.name, error.message, error.code, error.exitReason, error.runId] }`
    const { replayed } = await playOn(body, () => new Error('no room'))
    const summary = '[true,"StepError","no room","failed","error","run_1"]'
    expect(replayed).toMatchObject({ end: { kind: 'returned', summary } })
  })

  it('ends at the call whose failure nobody catches', async () => {
    const { replayed } = await playOn(`await agent('a')\nawait agent('b')`, (prompt) =>
      prompt === 'b' ? new Error('broken') : 1,
    )
    expect(replayed).toMatchObject({ end: { kind: 'failed', message: 'StepError: broken', line: 3 } })
  })

  it('works on lists at once with parallel and pipeline, with null for what threw', async () => {
    const body = `
      const first = await parallel([() => agent('a'), () => agent('b'), () => { throw new Error('c') }])
      const second = await pipeline([1, 2, 3],
        (item) => agent('s1-' + item),
        (result, item, index) => { if (item === 2) throw new Error('x'); return agent('s2-' + result + item + index) })
      return { first, second }`
    const { replayed, prompts } = await playOn(body, (prompt) => (prompt === 'b' ? new Error('no') : `<${prompt}>`))
    expect(prompts).toEqual(['a', 'b', 's1-1', 's1-2', 's1-3', 's2-<s1-1>10', 's2-<s1-3>32'])
    expect(JSON.parse((replayed as { end: { summary: string } }).end.summary)).toEqual({
      first: ['<a>', null, null],
      second: ['<s2-<s1-1>10>', null, '<s2-<s1-3>32>'],
    })
  })

  it('has a clock that shows when results came, and chance that follows from its run', async () => {
    const body = `const at = [Date.now(), new Date().getTimezoneOffset()]
      await agent('x'); return [...at, Date.now(), Math.random()]`
    const once = await playOn(body, () => 1)
    expect((once.replayed as { end: { summary: string } }).end.summary).toMatch(/^\[1000,0,2000,0\.\d+\]$/)
    expect((await playOn(body, () => 1)).replayed).toEqual(once.replayed)
    const chance = async (seed: string) => (await play('return Math.random()', { seed })) as unknown
    expect(await chance('flr_1')).toEqual(await chance('flr_1'))
    expect(await chance('flr_1')).not.toEqual(await chance('flr_2'))
  })

  it('tells its phase with its calls, and logs lines', async () => {
    const body = `phase('Build'); log('at', { a: 1 }, 2); agent('x'); phase('Check'); agent('y')
      await agent('z', { phase: 'Own' })`
    const replayed = await play(body)
    if (replayed.kind !== 'replayed') throw new Error(replayed.kind)
    expect(replayed.calls.map(({ args }) => JSON.parse(args).phase)).toEqual(['Build', 'Check', 'Own'])
    expect(replayed.log).toEqual(['at {"a":1} 2'])
  })

  it.each([
    ['agent()', 'TypeError: agent: prompt: '],
    ['agent("x", { color: "red" })', 'TypeError: agent: Unrecognized key: "color"'],
    ['agent("x", { effort: "huge" })', 'TypeError: agent: effort: '],
  ])('is told when a call does not fit: %s', async (call, message) => {
    expect(await play(`await ${call}`)).toMatchObject({
      calls: [],
      end: { kind: 'failed', message: expect.stringContaining(message) },
    })
  })

  it('makes at most 1,000 steps, and journals at most 16 MiB', async () => {
    expect(await play('for (let n = 0; n < 2000; n++) agent("x").catch(() => 1); await agent("y")')).toMatchObject({
      end: { kind: 'failed', message: 'A program makes at most 1,000 steps.' },
    })
    expect(await play('await agent("y")', { journalBytes: 16 * 1024 * 1024 })).toMatchObject({
      end: { kind: 'failed', message: 'The steps and results of a program take at most 16 MiB.' },
    })
  })

  it.each(['fetch', 'setTimeout', 'process', 'require', 'globalThis', 'WeakRef', 'performance', 'SharedArrayBuffer'])(
    'has no %s, also not by another way',
    async (name) => {
      const body = `const world = (0, [].constructor.constructor)('return this')(); return typeof world?.[${JSON.stringify(name)}]`
      expect(await play(body)).toMatchObject({ end: { kind: 'returned', summary: 'undefined' } })
    },
  )
})

describe('a replay', () => {
  const body = `const seen = []
    const note = (name) => (value) => { seen.push(name + value) }
    await Promise.all(['a', 'b', 'c'].map((name) => agent(name).then(note(name))))
    const first = await Promise.race([agent('d'), agent('e')])
    return seen.join() + first`

  it.each([
    ['abc', (seqs: number[]) => seqs],
    ['cba', (seqs: number[]) => seqs.toReversed()],
  ])('hands results over in the order that is written down', async (_, order) => {
    const played = await playOn(body, (prompt) => prompt.toUpperCase(), order)
    const summary = order([0, 1]).at(0) === 0 ? 'aA,bB,cCD' : 'cC,bB,aAE'
    expect(played.replayed).toMatchObject({ end: { kind: 'returned', summary } })
    // The whole is replayed at once.
    const { known, results } = played
    expect(await play(body, { known, results })).toEqual(played.replayed)
  })

  it('tells the first call that is not the known one, and the one that is missing', async () => {
    const { known: digests } = await playOn('await agent("old")', () => new Error('x'))
    expect(await play('await agent("new")', { known: digests })).toMatchObject({
      kind: 'differs',
      seq: 0,
      made: { kind: 'agent', args: '{"prompt":"new"}' },
    })
    expect(await play('return 1', { known: digests })).toEqual({ kind: 'differs', seq: 0, made: null })
    const results = [{ seq: 1, at: 1, isValue: true, text: '1' }]
    expect(await play('await agent("old")', { known: digests, results })).toEqual({
      kind: 'differs',
      seq: 1,
      made: null,
    })
  })

  it('does not mind which names the program exchanges', async () => {
    const spoilt = `Promise.prototype.then = () => { throw 1 }; Array.prototype.map = null; JSON.stringify = () => '1';
      JSON.parse = null; Array.isArray = () => false; String = null; Error.prototype.name = 'x';
      const [a] = await parallel([() => agent('a')]); log('x', a); return 'fine ' + a`
    const { replayed } = await playOn(spoilt, () => 'A')
    expect(replayed).toMatchObject({ log: ['x A'], end: { kind: 'returned', summary: 'fine A' } })
  })

  it('runs getters of arguments before the call, and what they call comes first', async () => {
    const { prompts } = await playOn(`await agent('outer', { get label() { agent('inner'); return 'l' } })`, () => 1)
    expect(prompts).toEqual(['inner', 'outer'])
  })
})

describe('a compile', () => {
  const compiled = async (source: string) => compileProgram(await createInstance(wasm), source)

  it('tells what the engine cannot run, and where', async () => {
    expect(await compiled(`${meta}return await agent('x')`)).toBeNull()
    expect(await compiled(`// export\n/* export */ ${meta}return 1`)).toBeNull()
    expect(await compiled(`${meta}\nconst a = 1; const a = 2`)).toMatchObject({ code: 'workflow_syntax', line: 3 })
    expect(await compiled(`${meta}${'['.repeat(90_000)}`)).toMatchObject({ code: 'workflow_syntax', line: null })
  })
})
