import type { RunRepo } from '../../../../shared/runs/repo.ts'
import { harnessFactsOf } from '../../../../shared/runs/harnesses.ts'
import { runVariableNames } from '../../../../shared/runs/run-variables.ts'
import { sayWhyLeftOut, type RunSkills } from '../../../../shared/runs/skills.ts'
import { tellsSkills } from '../../../../shared/runs/spec.ts'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import {
  runManifest,
  runRecordRoutes,
  type RunChangeSet,
  type RunManifest,
} from '../../../../shared/api/run-records.ts'
import { sayVariableLeftOut, variableLeftOutReasons } from '../../../../shared/runs/connection-variables.ts'
import type { ChangeSetResult } from '../../../../shared/device/change-set.ts'
import type { Db } from '../../../db/open.ts'
import { type BeforeInput, implement, type ImplementedRoute, prepared } from '../../../http/implement.ts'
import type { AnswerRoom } from '../../../http/answer-room.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { withoutHiddenFiles } from '../../conversations/attachments.ts'
import { isLinked } from '../../devices/rules.ts'
import { findDeviceByPublicId } from '../../devices/store.ts'
import { fileViewerOf } from '../../files/rules.ts'
import { listNetwork } from '../../sandboxes/network-store.ts'
import { findDetails, replaceOutput } from '../details-store.ts'
import type { RunDetails } from '../details-table.ts'
import { findChangeSet, measureChangeSet } from '../log-store.ts'
import { findRunSkills } from '../run-skills.ts'
import { listOutputSchemas, schemaMisfitOf, unnamedSchemaOf } from '../output-schemas.ts'
import { lookUpRun, readableRun, unknownRun } from '../lookup.ts'
import { findRun, type RunRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'costly' | 'leaseMs' | 'requests'>

/** A device that works on a large repository answers within this time, or not at all. */
const changeSetMs = 25_000
/** About what the reply takes for a changed file beside its patch. */
const fileBytes = 256

export function runRecordHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(runRecordRoutes, {
    async context({ db, caller, params }) {
      const run = await readableRun(db, caller, params.runId)
      const prompt = (await findDetails(db, run.id))?.prompt ?? null
      if (prompt === null) return fail('run.context_not_stored')
      // The prompt names files that its agent sees; who reads it may not.
      const viewing = { workspaceId: caller.workspaceId, viewer: fileViewerOf(caller) }
      return { prompt: await withoutHiddenFiles(db, viewing, prompt) }
    },

    async manifest({ db, caller, params }) {
      const run = await readableRun(db, caller, params.runId)
      const details = await findDetails(db, run.id)
      if (details === null || details.manifest === null) return fail('run.manifest_not_pinned')
      const told = tellsSkills(details.spec) ? await findRunSkills(db, run.id) : null
      const skills = { skills: skillsOf(told), skillsLeftOut: leftOutOf(told) }
      return { ...manifestOf(details, run), ...skills, outputSchemas: await listOutputSchemas(db, run) }
    },

    async network({ db, caller, params }) {
      const run = await readableRun(db, caller, params.runId)
      const rows = await listNetwork(db, run.id)
      const hosts = rows.map(({ host, decision, requests, bytesSent, bytesReceived, firstAt, lastAt }) => ({
        host,
        decision,
        requests,
        bytesSent,
        bytesReceived,
        firstAt: toTimestamp(firstAt),
        lastAt: toTimestamp(lastAt),
      }))
      return { runId: run.id, hosts }
    },

    async changeSet({ db, caller, params, world, room }) {
      const run = await readableRun(db, caller, params.runId)
      return readChangeSet(db, run, { deps, now: world.now(), room })
    },

    output: prepared<typeof runRecordRoutes.output, string | null>({
      before: async (input) => {
        const { schema: named, data } = input.body
        const run = await ownRun(input)
        const schema = named ?? (await unnamedSchemaOf(input.db, run))
        // A run's schemas stay as they are, so what fits now fits in the transaction.
        if (schema !== null) await checkOutput(input, run, { schema, data, costly: deps.costly })
        return schema
      },
      handle: async (input, schema) => {
        const { db, body, world } = input
        const run = await ownRun(input)
        await replaceOutput(db, { runId: run.id, schema, value: body.data, at: world.now() })
        return { runId: run.id, recorded: true as const }
      },
    }),

    async outputGet({ db, caller, params }) {
      const run = await readableRun(db, caller, params.runId)
      const details = await findDetails(db, run.id)
      if (details === null || details.outputAt === null)
        return fail('resource_not_found', { param: 'runId', message: 'This run has recorded no output.' })
      const { output, outputSchema, outputAt } = details
      return { runId: run.id, schema: outputSchema, data: output, recordedAt: toTimestamp(outputAt) }
    },
  })
}

type Output = BeforeInput<typeof runRecordRoutes.output>

/** The caller's run, while it lives. */
async function ownRun({ db, caller, params }: Output): Promise<RunRow> {
  const found = await lookUpRun(db, caller, params.runId)
  if (found === null || !found.isVisible) return unknownRun(params.runId)
  if (found.run.id !== caller.runId) fail('run_output.not_this_run')
  if (found.run.endedAt !== null) fail('run_output.run_terminal')
  return found.run
}

async function checkOutput(
  { db, caller }: Output,
  run: RunRow,
  { schema, data, costly }: { schema: string; data: unknown; costly: ResourceDependencies['costly'] },
): Promise<void> {
  const known = await listOutputSchemas(db, run)
  const named = Object.hasOwn(known, schema) ? known[schema] : undefined
  if (named === undefined) {
    const allowedValues = Object.keys(known)
    return fail('run_output.invalid', { param: 'schema', message: `No schema is named ${schema}.`, allowedValues })
  }
  const misfit = await schemaMisfitOf(named, data, { costly, caller })
  if (misfit !== null)
    fail('run_output.invalid', { param: misfit.path, message: `${misfit.path} ${misfit.message} (schema ${schema}).` })
}

const storedManifest = z.object({
  rules: z.array(z.object({ name: z.string(), text: z.string() })).default([]),
  envKeys: z.array(z.string()).default([]),
  envKeysLeftOut: z.array(z.object({ name: z.string(), reason: z.enum(variableLeftOutReasons) })).default([]),
  mcpServers: runManifest.shape.mcpServers.default({ given: [], leftOut: [] }),
})

function manifestOf(
  { runId, spec, manifest, wall }: RunDetails,
  { harnessVersion }: RunRow,
): Omit<RunManifest, 'outputSchemas' | 'skills' | 'skillsLeftOut'> {
  const stored = storedManifest.parse(manifest)
  // A run that went to its fallback harness was given what that one takes.
  const given = Object.keys(spec.mcpServers)
  return {
    runId,
    agent: spec.agent,
    harness: spec.harness,
    harnessVersion,
    model: spec.model,
    backupModel: spec.backupModel,
    reasoningEffort: spec.reasoningEffort,
    maxTurns: spec.maxTurns,
    ignored: harnessFactsOf(spec).ignores.filter((setting) => spec[setting] != null),
    folder: spec.folder,
    ...(spec.repo != null && { repo: repoOf(spec.repo) }),
    rules: stored.rules.filter((rule) => rule.name !== 'AGENT.md').map((rule) => rule.text),
    instructions: stored.rules.map(({ name, text }) => ({ name, sha256: sha256(text) })),
    permissions: spec.permissions,
    mcpServers: { given, leftOut: stored.mcpServers.leftOut.filter(({ name }) => !given.includes(name)) },
    // Variables of the spec are named, too: a run may have been stored before its manifest named all of them.
    envKeys: [...new Set([...runVariableNames(spec), ...stored.envKeys])],
    envKeysLeftOut: stored.envKeysLeftOut.map(({ name, reason }) => ({ name, reason: sayVariableLeftOut(reason) })),
    wall,
  }
}

const repoOf = ({ id, baseBranch, branch, rescueBranch }: RunRepo): RunManifest['repo'] => ({
  id,
  baseBranch,
  branch,
  rescueBranch,
})

function skillsOf(given: RunSkills | null): RunManifest['skills'] {
  const ofFolders = (given?.folders ?? []).flatMap(({ folder, skills }) =>
    skills.map(({ name, version }) => ({ id: `${folder.replace(/\/+$/, '')}/${name}`, name, version })),
  )
  const ofWorkspace = (given?.workspace?.skills ?? []).map((skill) => ({ id: `workspace/${skill.name}`, ...skill }))
  return [...ofFolders, ...ofWorkspace]
}

const leftOutOf = (given: RunSkills | null): RunManifest['skillsLeftOut'] =>
  (given?.workspace?.leftOut ?? []).map(({ slug, reason }) => ({ name: slug, reason: sayWhyLeftOut(reason) }))

/** The change-set that the run's device stored last. While the run works, the one that its device computes now. */
async function readChangeSet(
  db: Db,
  run: RunRow,
  { deps, now, room }: { deps: Dependencies; now: number; room: AnswerRoom },
): Promise<RunChangeSet> {
  if (run.startedAt === null && run.endedAt === null)
    return fail('source_unknown', { message: 'The run has not started yet.' })
  if (run.startedAt === null) return neverWorked()
  if (run.endedAt === null) {
    const live = await askDevice(db, run, { deps, now })
    if (live !== null) {
      if (live.ok) await room.hold(live.changeSet.diff.length + live.changeSet.files.length * fileBytes)
      return toReply(run, live, true)
    }
    // The run may have ended while its device was asked.
    if ((await findRun(db, run.id))?.endedAt === null)
      return fail('repo_unavailable', { message: 'The device of this run does not answer.' })
  }
  await room.hold(await measureChangeSet(db, run.id))
  const stored = await findChangeSet(db, run.id)
  if (stored !== null) return toReply(run, stored.result, false)
  if (run.exitReason === 'dispatch_error' || run.exitReason === 'harness_start_failed') return neverWorked()
  return fail('diff_unavailable', { message: 'The device sent no change-set before the run ended.' })
}

const neverWorked = () => fail('source_unknown', { message: 'The run never started to work.' })

async function askDevice(
  db: Db,
  run: RunRow,
  { deps, now }: { deps: Dependencies; now: number },
): Promise<ChangeSetResult | null> {
  const device = run.device === null ? null : await findDeviceByPublicId(db, run.device)
  if (device === null || !isLinked(device, now, deps.leaseMs)) return null
  return deps.requests.changeSet(device.publicId, { runId: run.id, fence: run.fence }, changeSetMs)
}

function toReply(run: RunRow, result: ChangeSetResult, live: boolean): RunChangeSet {
  if (!result.ok) return fail(result.code, { message: result.message })
  const { changeSet } = result
  const { sharedWith = [] } = changeSet
  return { ...changeSet, sharedWith, runId: run.id, live, capturedAt: toTimestamp(changeSet.capturedAt) }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
