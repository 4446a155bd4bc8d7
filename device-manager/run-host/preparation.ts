import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RunId } from '../../shared/lib/ids.ts'
import { releaseBase } from '../change-set/diff.ts'
import { takeBase } from '../change-set/snapshot.ts'
import type { World } from '../../shared/lib/world.ts'
import type { OfferedSkill } from '../../shared/runs/skills.ts'
import type { TriedAct } from '../../shared/runs/wall-acts.ts'
import { type RunSpec, takesSkills, takesSvcSkill, tellsSkills } from '../../shared/runs/spec.ts'
import type { HarnessAdapter, HarnessLaunch, LaunchFacts } from '../harness/adapter.ts'
import { firstStartFolder } from '../harness/first-start.ts'
import { HarnessLaunchError } from '../harness/parts/adapter-errors.ts'
import type { ServerLeftOut } from '../../shared/runs/filled-servers.ts'
import { adapterOfRun } from '../harness/registry.ts'
import { removeRunCgroup } from '../process/cgroup.ts'
import { findProgram } from '../process/program.ts'
import { hiddenFolderAround } from '../wall/hidden.ts'
import { specInFolder } from '../wall/read-only.ts'
import type { Wall } from '../wall/wall.ts'
import { foldersAround, repositoryFolders } from '../change-set/git-file.ts'
import { messageOf, type HostLog } from '../log/host-log.ts'
import { PathLookup } from '../../shared/permissions/path-lookup.ts'
import type { JudgedPlace } from '../../shared/permissions/patterns/path-rules.ts'
import type { Connections } from './mcp-proxy/connections.ts'
import { openMcpProxies, type McpProxies } from './mcp-proxy/mcp-proxies.ts'
import { brokerVariables } from '../harness/parts/broker-way.ts'
import { knownEnv, pathOf } from './launch/environment.ts'
import type { SkillsAhead } from './launch/skills-ahead.ts'
import { readSkills, type SkillsRead } from './launch/skills.ts'
import { withPluginFiles } from './launch/plugin-files.ts'
import { addSvcSkill } from './launch/svc-skill.ts'
import { addSkills, type CopyPlace } from './launch/workspace-skills.ts'
import { machineLinks } from './permission/machine-links.ts'
import type { HostRequest } from './wire/protocol.ts'
import { allOwnFolders, ownFolders } from './own-folders.ts'
import type { StandingWall } from './standing-wall.ts'
import type { Timeline } from './timeline.ts'
import { makePrivateFolder, removeOwnFolders, runPaths, writePrivateFile, type RunPaths } from './wire/record.ts'

export type Assignment = Extract<HostRequest, { type: 'assign' }>
type BaseResult = Awaited<ReturnType<typeof takeBase>>

export interface LaunchPlan {
  adapter: HarnessAdapter
  launch: HarnessLaunch
  /** The inputs that it was made from. */
  facts: LaunchFacts
  /** All of the environment that is known before the start. */
  env: Record<string, string>
  /** The program as it was found with this PATH, and when; null: it was not found. */
  program: { file: string; path: string; at: number } | null
}

/** All that is ready before the run may start. */
export interface Prepared {
  assignment: Assignment
  paths: RunPaths
  /** The harness's own folder; made when something is to be put into it. */
  harnessDir: string
  cwd: string
  base: BaseResult
  /** Runs that were found to work in the folder at the same time. */
  sharedWith: ReadonlySet<RunId>
  plan: LaunchPlan | { problem: unknown }
  /** Resolves the paths of calls, which are judged by it. */
  lookup: PathLookup
  place: JudgedPlace
  /** The skills of the run; null: it is given none, and none were looked for. */
  skills: SkillsRead | null
  /** MCP servers whose plugin's files are not there. */
  serversLeftOut: readonly ServerLeftOut[]
  /** The wall around the run; null: it has none. */
  wall: Wall | null | { problem: unknown }
  /** Acts by which the walls of the sandbox were tried; null: this is no sandbox. */
  sandboxActs: readonly TriedAct[] | null
  /** The proxies to MCP servers that are given a credential. */
  mcpProxies: McpProxies
  /** The connections whose credentials the proxies add. */
  connections: Connections
  /** Copies of skills that were made before there was a run. */
  ahead: SkillsAhead
  /** When the run came to each step. */
  timeline: Timeline
  /** The cgroup that is made when the harness runs. */
  cgroup: string | null
}

/**
 * Records the base of the run's change-set, and plans the launch. Nothing that is wrong with the repository or the folder
 * fails here: it becomes the change-set's answer, and the launch tells of a folder that cannot be entered. A folder for the
 * run is made when something is to be put into it: the run waits for all that is done here.
 */
export async function prepare(
  stateDir: string,
  assigned: Assignment,
  {
    world,
    log,
    wall,
    connections,
    ahead,
    timeline,
    sharedWith,
  }: {
    world: World
    log: HostLog
    wall: StandingWall
    connections: Connections
    ahead: SkillsAhead
    timeline: Timeline
    sharedWith: ReadonlySet<RunId>
  },
): Promise<Prepared> {
  const { spec } = assigned
  const paths = runPaths(stateDir, spec.runId)
  // An earlier host of this run left these (a lease that was lost before its start).
  if (existsSync(paths.root)) for (const old of [paths.base, paths.store]) rmSync(old, { recursive: true, force: true })
  const cwd = spec.folder?.rootPath ?? assigned.homeDir
  const taking = marked(baseOf(assigned, { stateDir, storeDir: paths.store, world }), 'base', timeline)
  const served = await withPluginFiles(spec.mcpServers, placeOfCopies(assigned, join(wall.own, 'plugins')))
  const opening = openMcpProxies(served.servers, { log, connections })
  const walling = marked(wallOf(assigned, { root: paths.root, cwd, wall }), 'wall', timeline)
  // The skills are read while git is at work.
  const skills = tellsSkills(spec) ? await skillsOf(assigned, { stateDir, runDir: wall.own, cwd, world, ahead }) : null
  const withThem = { ...spec, mcpServers: served.servers }
  const assignment = { ...assigned, spec: skills === null ? withThem : withTheseSkills(withThem, skills.told.digest) }
  const plan = planOf(assignment, { stateDir, runDir: wall.own, cwd, world, skills: skills?.given ?? [] })
  const lookup = new PathLookup(world, machineLinks)
  const skillFolders = (skills?.given.length ?? 0) > 0 ? [copiesIn(wall.own)] : []
  const svcSkill = skills?.given.find(({ isBuiltin }) => isBuiltin)?.name
  const place = await placeOf(assignment, { stateDir, cwd, skillFolders, svcSkill, lookup })
  const base = await taking
  if (base.ok) {
    try {
      recordBase(paths, assignment, base)
    } catch (error) {
      // A full disk: should this host die, the daemon makes no change-set. That is no reason not to run.
      log('base_not_recorded', { runId: spec.runId, error: messageOf(error) })
    }
  }
  return {
    assignment,
    paths,
    harnessDir: wall.own,
    cwd,
    base,
    sharedWith,
    plan,
    lookup,
    place,
    skills,
    serversLeftOut: served.leftOut,
    wall: await walling,
    sandboxActs: await wall.tryActs(),
    mcpProxies: await opening,
    connections,
    ahead,
    timeline,
    cgroup: null,
  }
}

async function marked<T>(work: Promise<T>, step: 'base' | 'wall', timeline: Timeline): Promise<T> {
  const done = await work
  timeline.mark(step)
  return done
}

/** Returns from where files are copied, and to which folder of the run; null: nothing was brought. */
const placeOfCopies = ({ skills: brought }: Assignment, folder: string): CopyPlace | null =>
  brought === undefined ? null : { brought, folder }

async function skillsOf(
  assignment: Assignment,
  {
    stateDir,
    runDir,
    cwd,
    world,
    ahead,
  }: { stateDir: string; runDir: string; cwd: string; world: World; ahead: SkillsAhead },
): Promise<SkillsRead> {
  const { spec, homeDir, wall } = assignment
  const takes = takesSkills(spec)
  const ofFolders = takes ? (spec.skillFolders ?? []) : []
  const read = await readSkills(ofFolders, { cwd, homeDir, ownFolders: allOwnFolders(stateDir, wall) }, world)
  const offered = { skills: (takes && spec.skills) || [], leftOut: spec.skillsLeftOut ?? [] }
  const takeAhead = (skills: readonly OfferedSkill[]) => ahead.take({ harness: spec.harness, skills: [...skills] })
  const place = placeOfCopies(assignment, copiesIn(runDir))
  const chosen = await addSkills(read, offered, place && { ...place, takeAhead })
  return takesSvcSkill(spec) ? addSvcSkill(chosen, copiesIn(runDir)) : chosen
}

/** Returns the folder in which a run has its copies of skills of the workspace. */
const copiesIn = (runDir: string): string => join(runDir, 'skills')

/** Drops the session to go on with where it was begun with other skills than these. */
function withTheseSkills(spec: RunSpec, digest: string): RunSpec {
  const { resumeSessionId, sessionSkills: before } = spec
  if (resumeSessionId === null || before == null || before.digest === digest) return spec
  return { ...spec, resumeSessionId: null, prompt: before.promptAnew }
}

/** Resolves what the run's rules are about, before anything of the run can move it. A harness that asks nothing needs none of it. */
async function placeOf(
  { spec, homeDir, svcBinDir }: Assignment,
  {
    stateDir,
    cwd,
    skillFolders,
    svcSkill,
    lookup,
  }: {
    stateDir: string
    cwd: string
    skillFolders: readonly string[]
    svcSkill: string | undefined
    lookup: PathLookup
  },
): Promise<JudgedPlace> {
  const loaded = svcSkill === undefined ? undefined : adapterOfRun(spec).skillName?.(svcSkill)
  const facts = {
    cwd,
    homeDir,
    skillFolders,
    ...(loaded !== undefined && { svcSkill: loaded }),
    permissions: spec.permissions,
    ownFolders: ownFolders(stateDir, process.env),
    svcProgram: svcBinDir === null ? null : join(svcBinDir, 'svc'),
  }
  if (adapterOfRun(spec).can.ask) return lookup.placeOf(facts)
  return { ...facts, realCwd: cwd, realPatterns: new Map() }
}

function recordBase(paths: RunPaths, { spec, fence }: Assignment, base: BaseResult): void {
  makePrivateFolder(paths.root)
  const folder = spec.folder?.rootPath ?? null
  writePrivateFile(paths.base, `${JSON.stringify({ runId: spec.runId, fence, folder, base })}\n`)
}

/** Makes the wall while git is at work, so that the start only enters it. The launch tells what is wrong with it. */
async function wallOf(
  { wall: spec }: Assignment,
  { root, cwd, wall }: { root: string; cwd: string; wall: StandingWall },
): Promise<Prepared['wall']> {
  if (spec === null) return null
  try {
    const around = hiddenFolderAround(spec, cwd)
    if (around !== null) {
      throw new HarnessLaunchError(
        `The folder ${cwd} lies in ${around}, which svc keeps for itself and hides from runs.`,
      )
    }
    // The steps into the wall write there what they have to say.
    makePrivateFolder(root)
    return await wall.make(specInFolder(spec, cwd))
  } catch (problem) {
    return { problem }
  }
}

/** Plans the launch from the spec alone. The launch tells where a spec does not say enough. */
function planOf(
  { spec, env, loginShell, svcBinDir, harnessVersion }: Assignment,
  {
    stateDir,
    runDir,
    cwd,
    world,
    skills,
  }: { stateDir: string; runDir: string; cwd: string; world: World; skills: SkillsRead['given'] },
): Prepared['plan'] {
  try {
    const adapter = adapterOfRun(spec)
    const isRoot = process.getuid?.() === 0
    const facts = {
      firstStartDir: firstStartOf(stateDir, adapter, harnessVersion),
      env,
      cwd,
      foldersAround: foldersAround(cwd),
      repositoryFolders: repositoryFolders(cwd),
      runDir,
      isRoot,
      loginShell,
      version: harnessVersion,
      mcpServers: {},
      skills,
    }
    const launch = adapter.command(spec, facts)
    const known = knownEnv(env, { ...brokerVariables(spec), ...launch.env })
    const path = pathOf(known['PATH'], svcBinDir)
    return { adapter, launch, facts, env: known, program: lookUpProgram(launch.file, { path, cwd, world }) }
  } catch (problem) {
    return { problem }
  }
}

function firstStartOf(stateDir: string, { name, firstStart }: HarnessAdapter, version: string | null): string | null {
  if (firstStart === undefined || version === null) return null
  const folder = firstStartFolder(stateDir, { name, version, firstStart })
  return existsSync(folder) ? folder : null
}

/** Looks the program up while nobody waits. The launch tells what is wrong with it. */
function lookUpProgram(
  name: string,
  { path, cwd, world }: { path: string; cwd: string; world: World },
): LaunchPlan['program'] {
  try {
    return { file: findProgram({ file: name, cwd, env: { PATH: path } }), path, at: world.monotonic() }
  } catch {
    return null
  }
}

async function baseOf(
  { spec, wall }: Assignment,
  { stateDir, storeDir, world }: { stateDir: string; storeDir: string; world: World },
): Promise<BaseResult> {
  if (!spec.folder) {
    return { ok: false, code: 'source_unknown', message: 'The run has no folder, so there is no change-set.' }
  }
  try {
    const own = allOwnFolders(stateDir, wall)
    return await takeBase({ folder: spec.folder.rootPath, runId: spec.runId, storeDir, ownFolders: own, world })
  } catch (error) {
    return { ok: false, code: 'repo_unavailable', message: messageOf(error).slice(0, 1000) }
  }
}

/** Removes all of a run that is over, or was never wanted, but what is in the spool. */
export async function cleanUp(prepared: Prepared): Promise<void> {
  prepared.mcpProxies.close()
  if (prepared.wall !== null && 'end' in prepared.wall) await prepared.wall.end()
  if (prepared.base.ok) await releaseBase(prepared.base.base).catch(() => {})
  if (prepared.cgroup !== null) removeRunCgroup(prepared.cgroup)
  rmSync(prepared.paths.root, { recursive: true, force: true })
  removeOwnFolders(prepared.harnessDir)
}
