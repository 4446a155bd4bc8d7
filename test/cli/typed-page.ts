import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { programFile } from '../kit/program-file.ts'
import { exampleWords } from './example-words.ts'
import { commandsOf } from './page-blocks.ts'
import type { Finished, Home } from './run-svc.ts'

/** Who types a page, and where. */
export interface Typist {
  home: Home
  folder: string
  /** Where svc finds its server, and as whom it calls. */
  env: Record<string, string>
}

export interface TypedPage {
  /** What stands on the page for something else: a text, and what is typed in its place. */
  fill?: Record<string, string | (() => string)>
  /** Commands that are not typed, by how they begin (pages-not-typed.ts). */
  skips?: readonly string[]
  /** Commands that an agent types, by how they begin, and what its run has in its environment. */
  inRun?: { commands: readonly string[]; env: () => Record<string, string> }
  /** What happens before a command, by how it begins; what it makes counts like what a command printed. */
  before?: Record<string, () => Promise<Finished | void> | void>
  /** What must be so after a command, by how it begins. */
  after?: Record<string, (end: Finished) => Promise<unknown> | void>
  /** Exit statuses other than 0. */
  status?: Record<string, number>
  /** Another folder than the typist's. */
  folder?: Record<string, string>
}

/**
 * Types the commands of a page in their order. Ids that a command printed stand for those of their kind from then on: the page writes
 * `run_...` or a whole one. Returns how many were typed.
 */
export function typePage(page: string, typist: Typist, plan: TypedPage = {}): Promise<number> {
  return typePageBy(page, plan, (typed, command) => {
    const isInRun = plan.inRun?.commands.some((begin) => command.startsWith(begin)) ?? false
    const env = { ...typist.env, ...(isInRun ? plan.inRun!.env() : {}) }
    return type(typed, { ...typist, env, folder: about(command, plan.folder) ?? typist.folder })
  })
}

/** The same, by whatever types: it is given what is typed, and the command as the page has it. */
export async function typePageBy(
  page: string,
  plan: TypedPage,
  typeLine: (typed: string, command: string) => Promise<Finished> | Finished,
): Promise<number> {
  const known = new Map<string, string>()
  let count = 0
  for (const command of commandsOf(page)) {
    if (plan.skips?.some((begin) => command.startsWith(begin))) continue
    const made = await about(command, plan.before)?.()
    for (const [id, kind] of firstOfEachKind(made?.stdout ?? '')) known.set(kind, id)
    const typed = filled(command, plan.fill ?? {}, known)
    const end = await typeLine(typed, command)
    expect([page, typed, end.status, end.status === 0 ? '' : end.stderr + end.stdout]).toEqual([
      page,
      typed,
      about(command, plan.status) ?? 0,
      end.status === 0 ? '' : expect.any(String),
    ])
    for (const [id, kind] of firstOfEachKind(end.stdout)) known.set(kind, id)
    await about(command, plan.after)?.(end)
    count++
  }
  return count
}

function about<Value>(command: string, table: Record<string, Value> | undefined): Value | undefined {
  return Object.entries(table ?? {}).find(([begin]) => command.startsWith(begin))?.[1]
}

const ids = /\b(agt|apr|cnv|conn|flr|fs|mcp|qst|run|sec|whk)_(?:[0-9A-Za-z]{16}\b|\.\.\.)/g

function firstOfEachKind(text: string): [id: string, kind: string][] {
  const found = new Map<string, string>()
  for (const [id, kind] of text.matchAll(ids)) if (!found.has(kind!)) found.set(kind!, id)
  return [...found].map(([kind, id]) => [id, kind])
}

function filled(command: string, fill: NonNullable<TypedPage['fill']>, known: ReadonlyMap<string, string>): string {
  let text = command.replaceAll(ids, (id, kind: string) => (fill[id] === undefined ? (known.get(kind) ?? id) : id))
  for (const [written, value] of Object.entries(fill))
    text = text.replaceAll(written, typeof value === 'string' ? value : value())
  return text
}

/** What needs no shell is typed in the process that is kept, which costs a few milliseconds. */
function type(command: string, { home, folder, env }: Typist): Promise<Finished> {
  const words = command.replaceAll('\\\n', ' ')
  if (isPlain(words)) return home.svc(exampleWords(words), { env, cwd: folder })
  return new Promise((resolve) => {
    const child = execFile(
      'bash',
      ['--norc', '-c', `set -euo pipefail; fpath=(x "$HOME/zsh"); ${command}`],
      { cwd: folder, env: { ...home.env, ...env, PATH: `${shims(home)}:${home.env['PATH']}` }, encoding: 'utf8' },
      (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : typeof error.code === 'number' ? error.code : null, stdout, stderr }),
    )
    child.stdin?.end()
  })
}
const isPlain = (command: string) =>
  command.startsWith('svc ') && !/[|<>;&$`~(]/.test(command.replaceAll(/'[^']*'/g, '').replaceAll(/"[^"$`]*"/g, ''))

/** A folder with the programs by their names. */
function shims({ dir }: Home): string {
  const folder = join(dir, 'programs')
  if (existsSync(folder)) return folder
  mkdirSync(folder)
  for (const [name, program] of [
    ['svc', 'cli'],
    ['svc-server', 'control-plane'],
  ] as const) {
    const file = join(folder, name)
    const start = `exec "${process.execPath}" --disable-warning=ExperimentalWarning "${programFile(program)}" "$@"`
    writeFileSync(file, `#!/bin/sh\n${start}\n`)
    chmodSync(file, 0o755)
  }
  return folder
}
