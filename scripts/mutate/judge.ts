import { fork, type ChildProcess } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Mutant } from './mutants.ts'
import type { Answer, Question } from './tests.ts'

/** Says how the tests took a mutant: `lived` when all of them passed. */
export type Verdict = 'killed' | 'timed out' | 'lived'

/** The first run starts databases and compiles all that the tests import. */
const firstMs = 900_000
const tries = 4

/** Says how a set of tests goes where nothing is changed. */
interface Usual {
  ms: number
  passed: number
  /** A file that they were asked about. */
  changed: string
}

/** A copy of a checkout in which files are changed. Its packages are those of the checkout. */
export class Copy {
  readonly root: string
  private readonly graceMs: number
  private tests: ChildProcess | null = null
  private readonly usual = new Map<string, Usual>()

  /** @param graceMs What a mutant may take beyond four times of what the tests take without one. */
  constructor(checkout: string, graceMs = 10_000) {
    this.graceMs = graceMs
    this.root = mkdtempSync(join(tmpdir(), 'svc-mutants-'))
    const left = new Set(['.git', '.cache', 'dist', 'coverage', 'node_modules'])
    cpSync(checkout, this.root, { recursive: true, filter: (path) => !left.has(basename(path)) })
    const [packages, linked] = [join(checkout, 'node_modules'), join(this.root, 'node_modules')]
    mkdirSync(linked)
    // Folders with a dot hold what Vitest and others compiled: the copy has its own. The mark says what is installed.
    for (const name of readdirSync(packages).filter((each) => !each.startsWith('.') || each === '.installed'))
      symlinkSync(join(packages, name), join(linked, name))
  }

  /** Throws where the tests fail without any mutant, since they would say nothing about one. */
  async judge(file: string, mutant: Mutant, tests: readonly string[]): Promise<Verdict> {
    const usual = await this.usualOf(file, tests)
    // The process that ran them was ended: the new one starts and compiles what it needs before it is timed.
    if (this.tests === null) await this.ask({ tests, changed: file }, firstMs)
    const path = join(this.root, file)
    const source = readFileSync(path, 'utf8')
    writeFileSync(path, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end))
    try {
      return await this.verdictOf({ tests, changed: file }, usual.passed, 4 * usual.ms + this.graceMs)
    } finally {
      writeFileSync(path, source)
    }
  }

  /** Throws where tests that were asked fail now: then the verdicts on mutants say nothing either. */
  async checkTests(): Promise<void> {
    for (const [key, { passed, changed }] of this.usual)
      if ((await this.verdictOf({ tests: key.split(' '), changed }, passed, firstMs)) !== 'lived')
        throw new Error(`Without any mutant these tests fail by now, so no verdict counts: ${key}`)
  }

  remove(): void {
    this.end()
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
  }

  private async verdictOf(question: Question, usuallyPassed: number, limitMs: number): Promise<Verdict> {
    // A run that was stopped at its first failure may take the beginning of the next one with it.
    for (let attempt = 0; attempt < tries; attempt++) {
      const answer = await this.ask(question, limitMs)
      if (answer === 'late') return 'timed out'
      if (answer.failed.length > 0) return 'killed'
      if (answer.passed === usuallyPassed) return 'lived'
    }
    throw new Error(`Other tests are run each time by ${question.tests.join(' ')}.`)
  }

  private async usualOf(file: string, tests: readonly string[]): Promise<Usual> {
    const key = tests.join(' ')
    const known = this.usual.get(key)
    if (known !== undefined) return known
    // The first time they are compiled, too.
    await this.ask({ tests, changed: file }, firstMs)
    const begun = performance.now()
    const answer = await this.ask({ tests, changed: file }, firstMs)
    if (answer === 'late' || answer.failed.length > 0)
      throw new Error(`Without any mutant these tests fail: ${answer === 'late' ? key : answer.failed.join('\n')}`)
    const usual = { ms: performance.now() - begun, passed: answer.passed, changed: file }
    this.usual.set(key, usual)
    return usual
  }

  private ask(question: Question, limitMs: number): Promise<Answer | 'late'> {
    // A group of its own: tests that never end are ended with all that they started.
    const tests = (this.tests ??= fork(join(import.meta.dirname, 'tests.ts'), { cwd: this.root, detached: true }))
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer | 'late' | null) => {
        clearTimeout(timer)
        tests.removeAllListeners('message').removeAllListeners('exit')
        if (answer === null) reject(new Error('The process that runs the tests ended.'))
        else resolve(answer)
      }
      const timer = setTimeout(() => {
        this.end()
        settle('late')
      }, limitMs)
      tests.on('message', (answer: Answer) => settle(answer))
      tests.on('exit', () => settle(null))
      tests.send(question)
    })
  }

  private end(): void {
    if (this.tests?.pid !== undefined) process.kill(-this.tests.pid, 'SIGKILL')
    this.tests = null
  }
}
