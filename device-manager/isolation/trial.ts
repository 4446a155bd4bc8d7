import { accessSync, constants, realpathSync } from 'node:fs'
import path from 'node:path'
import type { IsolationLevel } from '../../shared/device/isolation.ts'
import type { World } from '../../shared/lib/world.ts'
import { findGit, type GitProgram } from '../change-set/git.ts'
import { spawnPiped } from '../process/program.ts'
import { holderPlan } from '../wall/hidden.ts'
import { enteringPrograms, systemPath } from '../wall/namespaces.ts'
import { type WallSpec, WallError, type WallTool } from '../wall/spec.ts'
import { makeWall } from '../wall/wall.ts'

/** The outcome of trying the wall on this machine. */
export interface Trial {
  level: IsolationLevel
  /** null: there is no way that works. */
  spec: WallSpec | null
  /** Why it is not `full`; a sentence or more for the owner of the device. */
  message: string | null
}

const trialMs = 20_000

/** Tries each way to make the wall by really making it, and looks from inside at what it hides. */
export async function tryWall(
  places: Omit<WallSpec, 'tool' | 'programs'>,
  { gaps, world }: { gaps: readonly string[]; world: World },
): Promise<Trial> {
  const troubles: string[] = []
  for (const tool of toolsOf(process.platform)) {
    const programs = findPrograms(neededBy(tool))
    if ('missing' in programs) {
      troubles.push(`${tool}: ${programs.missing} is not installed.`)
      continue
    }
    const spec: WallSpec = { tool, programs: programs.found, ...places }
    const seen = await lookAround(spec, world)
    if ('writable' in seen) return judged(spec, [...gaps, ...seen.writable.map(writableText)])
    troubles.push(seen.trouble)
  }
  const none = 'svc knows no way to hide its folders and processes on this system.'
  return { level: 'off', spec: null, message: troubles.length === 0 ? none : troubles.join(' ') }
}

function judged(spec: WallSpec, gaps: readonly string[]): Trial {
  const messages: string[] = []
  if (spec.tool === 'sandbox-exec')
    messages.push('Processes outside of a run can be listed from it, and a process of it that hides itself lives on.')
  if (process.getuid?.() === 0)
    messages.push('The device manager runs as root, so a run owns the programs and settings of this machine.')
  const git = replaceableGit(findGit(process.env['PATH'] ?? ''))
  if (git !== null) messages.push(git)
  messages.push(...gaps)
  return { level: messages.length === 0 ? 'full' : 'partial', spec, message: messages.join(' ') || null }
}

const writableText = (file: string) => `A run may write to ${file}, which svc executes outside of it.`

/** svc starts git outside of the wall. Pure; exported for its test. */
export function replaceableGit(git: GitProgram | null): string | null {
  if (git?.isReplaceable !== true) return null
  return `A run may put another program in the place of ${git.file}, which svc starts outside of it; install git for all users of this machine.`
}

function toolsOf(platform: NodeJS.Platform): readonly WallTool[] {
  if (platform === 'linux') return ['bwrap', 'unshare']
  return platform === 'darwin' ? ['sandbox-exec'] : []
}

function neededBy(tool: WallTool): readonly string[] {
  if (tool === 'sandbox-exec') return ['sandbox-exec']
  return tool === 'bwrap' ? [...enteringPrograms, 'bwrap'] : enteringPrograms
}

/** Searches the system's folders alone: a run may have put a program first on a person's PATH. */
export function findPrograms(names: readonly string[]): { found: Record<string, string> } | { missing: string } {
  const found: Record<string, string> = {}
  for (const name of names) {
    const file = systemPath
      .split(':')
      .map((folder) => path.join(folder, name))
      .find(isExecutable)
    if (file === undefined) return { missing: name }
    found[name] = realpathSync(file)
  }
  return { found }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Prints what a program inside sees, a line each. An unmount that succeeds would show what was hidden. Files of control groups are
 * opened for writing and nothing is written. What must be read-only comes first, before a lone slash.
 */
const lookScript = `
while [ "$1" != / ]; do
  if [ -d "$1" ]; then
    mkdir "$1/.svc-trial" 2>/dev/null && { rmdir "$1/.svc-trial"; echo "writable $1"; }
  else
    { true >>"$1"; } 2>/dev/null && echo "writable $1"
  fi
  shift
done
state=$2; shift 2
umount "$state" 2>/dev/null && echo unmounted
for folder do ls -A "$folder" 2>&1 | sed 's/^/hidden /'; done
ls -A "$state" 2>&1 | sed 's/^/state /'
if [ -e /proc/1/comm ]; then
  sed -n 's/^CapEff:[[:space:]]*/capabilities /p' /proc/self/status
  echo "first $(cat /proc/1/comm)"
  readlink /proc/1/root >/dev/null && echo opened
  unshare --user --cgroup true 2>/dev/null && echo regrouped
  set --
  while read -r id parent device root at rest; do
    case "$at" in *'\\'*) at=$(printf %b "$at") ;; esac
    case "$rest" in *' - cgroup'*) set -- "$@" "$at" ;; esac
  done </proc/self/mountinfo
  [ $# -gt 0 ] &&
    find "$@" -name cgroup.kill -o -name cgroup.procs -o -name cgroup.freeze -o -name freezer.state 2>/dev/null |
      while read -r file; do { true >>"$file"; } 2>/dev/null && echo "group $file" && break; done
fi
echo done
`

/** `writable`: what should be read-only and is not, by paths. */
type Seen = { trouble: string } | { writable: string[] }

async function lookAround(spec: WallSpec, world: World): Promise<Seen> {
  try {
    const { readOnly } = holderPlan(spec)
    const wall = await makeWall(spec, [], world)
    try {
      const entered = wall.enter({
        file: '/bin/sh',
        args: ['-c', lookScript, 'svc', ...readOnly, '/', spec.stateDir, ...spec.hidden],
        env: { PATH: systemPath, LC_ALL: 'C' },
        cwd: '/',
        report: '/dev/null',
      })
      const output = await outputOf(entered, world)
      const trouble = judge(spec, output)
      return trouble === null
        ? { writable: readOnly.filter((file) => output.includes(`writable ${file}\n`)) }
        : { trouble }
    } finally {
      await wall.end()
    }
  } catch (error) {
    if (error instanceof WallError) return { trouble: error.message }
    throw error
  }
}

/** Pure: what is wrong with what was seen from inside. Exported for its test. */
export function judge({ tool }: Pick<WallSpec, 'tool'>, output: string): string | null {
  const lines = output.split('\n')
  const has = (line: string) => lines.includes(line)
  const broken = (why: string) => `${tool}: ${why}`
  if (!has('done')) return broken(`a program could not be started inside: ${output.trim().slice(0, 500)}`)
  if (has('unmounted')) return broken('a run could undo what hides the folders of svc.')
  const isHidden = (line: string) => /: (?:Operation not permitted|Permission denied)$/.test(line)
  const seen = lines.find((line) => line.startsWith('hidden ') && !isHidden(line))
  if (seen !== undefined) return broken(`a folder of svc is not hidden: ${seen}`)
  const shown = ['bin', 'compile-cache']
  const ofState = lines.filter((line) => line.startsWith('state ') && !isHidden(line))
  const other = ofState.find((line) => !shown.includes(line.slice('state '.length)))
  if (other !== undefined) return broken(`the state folder is not hidden: ${other}`)
  if (tool === 'sandbox-exec') return null
  if (!lines.some((line) => /^capabilities 0+$/.test(line))) return broken('a run would keep capabilities.')
  if (!has('first cat')) return broken('processes outside of a run can be seen from it.')
  if (has('regrouped') || lines.some((line) => line.startsWith('group '))) {
    return broken('a run could kill or freeze the device manager by its control group.')
  }
  return has('opened') ? broken('a run could reach around what hides the folders of svc.') : null
}

async function outputOf(
  { file, args, env }: { file: string; args: string[]; env: Record<string, string> },
  world: World,
): Promise<string> {
  const started = spawnPiped(file, args, { cwd: '/', env, detached: true })
  if ('failed' in started) return (await started.failed).message
  const { child } = started
  child.stdin.end()
  let output = ''
  const take = (chunk: Buffer) => {
    output = `${output}${chunk.toString('utf8')}`.slice(0, 100_000)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  const cancel = world.after(trialMs, () => child.kill('SIGKILL'))
  await new Promise<void>((resolve) => child.once('close', () => resolve()))
  cancel()
  return output
}
