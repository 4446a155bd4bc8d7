import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative, isAbsolute, dirname } from 'node:path'
import type { World } from '../../../shared/lib/world.ts'
import type { HarnessLaunch } from '../../harness/adapter.ts'
import { HarnessLaunchError } from '../../harness/parts/adapter-errors.ts'
import { messageOf } from '../../log/host-log.ts'
import { findProgram, SpawnError } from '../../process/program.ts'
import { openReport } from '../../wall/namespaces.ts'
import { WallError, WallOpenError } from '../../wall/spec.ts'
import type { Wall } from '../../wall/wall.ts'
import type { LaunchPlan, Prepared } from '../preparation.ts'
import type { HostRequest } from '../wire/protocol.ts'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { openedWall, type TriedAct } from '../../../shared/runs/wall-acts.ts'
import { filledServers, type ServerLeftOut } from '../../../shared/runs/filled-servers.ts'
import type { Child, ChildLaunch } from './child.ts'
import { harnessEnv } from './environment.ts'
import { hashOf } from './skills-ahead.ts'
import { launchOverHttp } from './http.ts'
import { launchOnPipes } from './pipes.ts'
import { launchInPty } from './pty.ts'

export type StartRequest = Extract<HostRequest, { type: 'start' }>

/** A program that was looked up longer ago than this is looked up again. */
const freshMs = 1_000

export interface Launched extends Child {
  /** Says why the wall was not passed, so that what exited is not the harness; null: the harness began. */
  launchTrouble(): string | null
  /** Returns the acts by which the wall was tried before that; null: none were, or not yet. */
  actsTried(): readonly TriedAct[] | null
}

/** Launches the harness. Throws HarnessLaunchError when the program, the folder or the wall is not what it should be. */
export function launchHarness(
  { prepared, plan, start, world }: { prepared: Prepared; plan: LaunchPlan; start: StartRequest; world: World },
  on: Pick<ChildLaunch, 'onOutput' | 'onStderr'>,
): Launched {
  const { cwd, paths, harnessDir, wall, sandboxActs } = prepared
  if (wall !== null && 'problem' in wall) throw unwalled(wall.problem)
  const opened = sandboxActs && openedWall(sandboxActs)
  if (opened !== null) throw new WallOpenError(opened)
  const env = environmentOf({ prepared, plan, start })
  const path = env['PATH'] ?? ''
  const { program } = plan
  const isKnown = program !== null && program.path === path && world.monotonic() - program.at <= freshMs
  const file = isKnown ? program.file : programAt(plan.launch.file, { path, cwd })
  layOut(harnessDir, plan.launch, prepared.ahead.laid)
  const launchChild = launcherOf(plan.launch)
  const command = { file, args: plan.launch.args, env, cwd }
  if (wall === null)
    return { ...launchChild({ ...command, ...on }), launchTrouble: () => null, actsTried: () => sandboxActs }
  const report = openReport(join(paths.root, 'launch'))
  const child = launchChild({ ...enter(wall, { ...command, report: report.path, triesActs: true }), cwd: '/', ...on })
  return {
    ...child,
    closed: child.closed.then((exit) => report.trueExit(exit)),
    launchTrouble: () => report.trouble(),
    actsTried: () => report.tried(),
  }
}

/** The whole environment of the harness. */
function environmentOf({ prepared, plan, start }: { prepared: Prepared; plan: LaunchPlan; start: StartRequest }) {
  const { spec, svcBinDir } = prepared.assignment
  return harnessEnv({
    known: plan.env,
    secrets: start.secrets,
    runId: spec.runId,
    agentId: spec.agent.id,
    token: start.token,
    apiUrl: start.apiUrl,
    svcBinDir,
  })
}

/** Launches a program by its way of input and output. */
export function launcherOf({ io, http }: Pick<HarnessLaunch, 'io' | 'http'>): (launch: ChildLaunch) => Child {
  if (io === 'pty') return launchInPty
  if (io === 'pipes') return launchOnPipes
  if (http === undefined) throw new Error('a harness that serves HTTP must say how it is spoken to')
  return (launch) => launchOverHttp({ ...launch, http })
}

function programAt(file: string, { path, cwd }: { path: string; cwd: string }): string {
  try {
    return findProgram({ file, cwd, env: { PATH: path } })
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error
    const isUnknown = error.code === 'program_not_found' && !file.includes('/')
    const hint = `The program ${file} was not found on the PATH of the login shell. Install it, or make the login shell put it on the PATH.`
    throw new HarnessLaunchError(isUnknown ? hint : error.message)
  }
}

function enter(wall: Wall, entering: Parameters<Wall['enter']>[0]) {
  try {
    return wall.enter(entering)
  } catch (error) {
    throw unwalled(error)
  }
}

/** Makes a problem of the wall a launch that failed: a run is never started without the wall that was chosen. */
function unwalled(problem: unknown): unknown {
  return problem instanceof WallError ? new HarnessLaunchError(problem.message) : problem
}

/** Puts into the folder of the run's own what the launch asks for. `laid`: hashes of files that are there. */
export function layOut(
  runDir: string,
  { files, links, copies }: Pick<HarnessLaunch, 'files' | 'links' | 'copies'>,
  laid: ReadonlyMap<string, string> = new Map(),
): void {
  for (const { path, content } of files)
    if (!laid.has(path) || laid.get(path) !== hashOf(content))
      writeFileSync(placeInside(runDir, path), content, { mode: 0o600 })
  for (const link of links ?? []) linkHarnessFile(runDir, link)
  for (const copy of copies ?? []) copyHarnessFiles(runDir, copy)
}

/** Leaves a file that cannot be copied, since it goes at this moment or the disk is full, to the program: it tells better. */
function copyHarnessFiles(runDir: string, { path, from }: NonNullable<HarnessLaunch['copies']>[number]): void {
  mkdirSync(placeInside(runDir, path), { recursive: true, mode: 0o700 })
  // A copy never overwrites what is there: it may be a link to a file of the person's.
  const mode = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE
  for (const name of filesIn(from)) {
    try {
      copyFileSync(join(from, name), join(path, name), mode)
    } catch {}
  }
}

/** Lists the plain files of the folder: a link leads elsewhere, and a pipe holds up its reader. */
function filesIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  } catch {
    return []
  }
}

function linkHarnessFile(
  runDir: string,
  { path, target, isMade = false }: NonNullable<HarnessLaunch['links']>[number],
): void {
  const place = placeInside(runDir, path)
  try {
    if (isMade) mkdirSync(target, { recursive: true, mode: 0o700 })
    if (existsSync(target)) symlinkSync(target, place)
  } catch (error) {
    throw new HarnessLaunchError(`${target} cannot be given to the run: ${messageOf(error)}`)
  }
}

/** Makes the folder that the path lies in. */
function placeInside(runDir: string, path: string): string {
  const inside = relative(runDir, path)
  if (inside.startsWith('..') || isAbsolute(inside)) throw new Error(`${path} is outside of the run's folder`)
  mkdirSync(dirname(join(runDir, inside)), { recursive: true, mode: 0o700 })
  return path
}

/** The plan of a launch with the workspace's MCP servers, which is made when the run's secrets have come. */
interface ServedPlan {
  plan: LaunchPlan
  servers: McpServers
  leftOut: readonly ServerLeftOut[]
}

/** Servers behind proxies have no variables left, also for an adapter whose program fills them in itself. */
function withAddresses(spec: RunSpec, servers: McpServers): RunSpec {
  const remote = Object.entries(servers).filter(([, { type }]) => type !== 'stdio')
  return { ...spec, mcpServers: { ...spec.mcpServers, ...Object.fromEntries(remote) } }
}

/** Plans the launch with these servers, on which the environment does not depend. Throws what the adapter throws. */
export function withServers(parts: { prepared: Prepared; plan: LaunchPlan; start: StartRequest }): ServedPlan {
  const { plan, prepared } = parts
  const { spec } = prepared.assignment
  if (Object.keys(spec.mcpServers).length === 0) return { plan, servers: {}, leftOut: prepared.serversLeftOut }
  const env = environmentOf(parts)
  const filled = filledServers(spec.mcpServers, env)
  const { servers, leftOut } = prepared.mcpProxies.lead(filled.servers, {
    spec: spec.mcpServers,
    secrets: parts.start.secrets,
    env,
  })
  const launch = plan.adapter.command(withAddresses(spec, servers), { ...plan.facts, mcpServers: servers })
  return { plan: { ...plan, launch }, servers, leftOut: [...prepared.serversLeftOut, ...filled.leftOut, ...leftOut] }
}
