/**
 * The globals that stand in the engine before the program. This runs within the engine, so it uses nothing that the program
 * could exchange: what it needs later it takes now. `host.call` answers the number of the call, or why it is refused.
 */
export const guestFile = 'svc.js'
export const guest = String.raw`(function (host, names, inputText, seed) {
  'use strict'
  const { stringify, parse } = JSON
  const { isArray } = Array
  const { defineProperty, create } = Object
  const world = globalThis
  const PromiseOf = Promise
  const TypeErrorOf = TypeError
  const ErrorOf = Error
  const TextOf = String
  const waiting = create(null)
  let currentPhase

  class StepError extends ErrorOf {
    constructor({ message, code, exitReason, runId }) {
      super(message)
      this.code = code
      this.exitReason = exitReason
      this.runId = runId
    }
  }
  defineProperty(StepError.prototype, 'name', { value: 'StepError' })

  // Awaited where it is returned: a promise that an async function returns would be taken by its own 'then'.
  let steps = 0
  const call = (kind, args) => {
    const text = stringify(args)
    const { label } = args
    const answer = host.call(kind, text)
    if (typeof answer === 'string') throw new TypeErrorOf(answer)
    const isStep = kind === 'agent' || kind === 'gate'
    const name = (isStep ? 'Step ' + steps++ : kind) + (typeof label === 'string' ? ' ' + stringify(label) : '')
    // The place of the call is known now, not when its result comes.
    const { stack } = new ErrorOf()
    return new PromiseOf((resolve, reject) => {
      waiting[answer] = { resolve, reject, stack, name }
    })
  }
  const settle = (seq, isValue, text) => {
    const { resolve, reject, stack, name } = waiting[seq]
    delete waiting[seq]
    if (isValue) return resolve(parse(text))
    const error = new StepError(parse(text))
    // A program may pass over it, as 'parallel' does. Its message may name an agent that not all readers of the log see.
    host.failure(name + ' failed: ' + error.code)
    defineProperty(error, 'stack', { value: stack, configurable: true, writable: true })
    reject(error)
  }

  const orNull = async (thunk) => {
    try {
      return await thunk()
    } catch {
      return null
    }
  }
  const flow = async (item, index, stages) => {
    try {
      let result = item
      for (let at = 0; at < stages.length; at++) result = await stages[at](result, item, index)
      return result
    } catch {
      return null
    }
  }
  const all = async (count, start) => {
    const started = []
    const results = []
    for (let at = 0; at < count; at++) started[at] = start(at)
    for (let at = 0; at < count; at++) results[at] = await started[at]
    return results
  }

  const globals = {
    input: parse(inputText),
    StepError,
    agent: async (prompt, options) => await call('agent', { phase: currentPhase, ...options, prompt }),
    gate: async (argv, options) => await call('gate', { phase: currentPhase, ...options, argv }),
    ask: async (prompt, options) => await call('ask', { ...options, prompt }),
    checks: async (options) => await call('checks', { ...options }),
    parallel: async (thunks) => {
      if (!isArray(thunks)) throw new TypeErrorOf('parallel takes a list of functions.')
      return await all(thunks.length, (at) => orNull(thunks[at]))
    },
    pipeline: async (items, ...stages) => {
      if (!isArray(items)) throw new TypeErrorOf('pipeline takes a list of items, then its stages.')
      return await all(items.length, (at) => flow(items[at], at, stages))
    },
    phase: (name) => {
      currentPhase = TextOf(name)
    },
    log: (...parts) => {
      let line = ''
      for (let at = 0; at < parts.length; at++) {
        const part = parts[at]
        line += (at > 0 ? ' ' : '') + (typeof part === 'string' ? part : (stringify(part) ?? TextOf(part)))
      }
      host.log(line)
    },
    fail: (message) => {
      const error = new ErrorOf(message === undefined ? 'The program failed and did not say why.' : TextOf(message))
      host.end('failed', describe(error))
      throw error
    },
  }

  // sfc32
  let [a, b, c, d] = seed
  const random = () => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 4294967296
  }
  for (let round = 0; round < 12; round++) random()
  defineProperty(Math, 'random', { value: random, configurable: true, writable: true })

  const describe = (error) => {
    const described = create(null)
    try {
      if (error instanceof ErrorOf) {
        described.name = TextOf(error.name)
        described.message = TextOf(error.message)
        described.stack = TextOf(error.stack)
      } else described.message = TextOf(error)
    } catch {
      described.message = 'Something was thrown that has no text.'
    }
    return stringify(described)
  }
  const run = async (main) => {
    try {
      const value = await main()
      const isNothing = value === undefined || value === null
      host.end('returned', isNothing ? 'null' : stringify(typeof value === 'string' ? value : stringify(value)))
    } catch (error) {
      host.end('failed', describe(error))
    }
  }

  for (const name of names) delete world[name]
  for (const name in globals) defineProperty(world, name, { value: globals[name], configurable: false })
  return { run, settle, describe }
})`
