import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compileCache } from '../kit/compile-cache.ts'
import { programFile } from '../kit/program-file.ts'
import { callKept } from './kept-svc.ts'

/**
 * Runs the real program with folders of its own. `svc` runs most calls in a process that is kept (kept-svc.ts). In a process of
 * their own run: calls of `start`, which signals and pipes are about; those that say so; those that come while another is at work;
 * those with settings that Node reads at its start; and other programs than this checkout's.
 */
export const svcProgram = programFile('cli')

export interface Finished {
  status: number | null
  stdout: string
  stderr: string
}

export interface Home {
  dir: string
  env: Record<string, string>
  svc(line: readonly string[], options?: SvcOptions): Promise<Finished>
  start(line: readonly string[], options?: SvcOptions): Running
  remove(): void
}
export interface SvcOptions {
  env?: Record<string, string>
  input?: string
  cwd?: string
  nodeFlags?: readonly string[]
  /** The test is about what only a process of its own shows. */
  isOwnProcess?: boolean
  /** Says where standard output goes instead. */
  stdout?: number
}

export interface Running {
  child: ChildProcess
  finished: Promise<Finished>
  /** Resolves when standard output holds so many lines. */
  lines(count: number): Promise<string[]>
}

/** `programs`: the folder of another svc than this checkout's. */
export function makeHome(programs?: string): Home {
  const dir = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: dir,
    ...compileCache,
    SVC_CONFIG_DIR: join(dir, 'config'),
    SVC_STATE_DIR: join(dir, 'state'),
    SVC_DATA_DIR: join(dir, 'data'),
  }
  const start = (line: readonly string[], options: SvcOptions = {}) =>
    startSvc([programFile('cli', programs), ...line], { ...options, env: { ...env, ...options.env } })
  const callInKept = (line: readonly string[], options: SvcOptions) => {
    if (programs !== undefined || needsOwnProcess(options)) return null
    const { input = '', cwd = process.cwd() } = options
    return callKept({ line, env: { ...env, ...options.env }, input, cwd })
  }
  return {
    dir,
    env,
    start,
    svc: (line, options = {}) => callInKept(line, options) ?? start(line, options).finished,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const needsOwnProcess = ({ isOwnProcess, nodeFlags, stdout, env = {} }: SvcOptions) =>
  isOwnProcess === true ||
  nodeFlags !== undefined ||
  stdout !== undefined ||
  Object.keys(env).some((name) => name.startsWith('NODE_'))

function startSvc(line: readonly string[], { env, input, cwd, nodeFlags, stdout }: SvcOptions): Running {
  const flags = ['--disable-warning=ExperimentalWarning', ...(nodeFlags ?? [])]
  const child = spawn(process.execPath, [...flags, ...line], {
    env,
    cwd,
    stdio: ['pipe', stdout ?? 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  const waiting: (() => void)[] = []
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
    for (const look of waiting) look()
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(input ?? '')
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, ...text }))
  })
  return {
    child,
    finished,
    lines: (count) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const lines = text.stdout.split('\n').slice(0, -1)
          if (lines.length >= count) resolve(lines)
        }
        waiting.push(look)
        look()
        void finished.then((end) => reject(new Error(`svc ended first: ${JSON.stringify(end)}`)))
      }),
  }
}
