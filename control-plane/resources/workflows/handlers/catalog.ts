import { fail, type ErrorCode } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { WorkflowRow } from '../../../../shared/api/workflow-fields.ts'
import { CatalogError, type BuiltIn } from '../../../workflows/catalog/catalog.ts'
import type { ResourceDependencies } from '../../dependencies.ts'

type Dependencies = Pick<ResourceDependencies, 'engine' | 'workflowCatalog'>

/** The programs that come with the server. Fails with `code` when they cannot be read. */
export async function builtIns(
  { engine, workflowCatalog }: Dependencies,
  code: ErrorCode,
): Promise<readonly BuiltIn[]> {
  if (engine === null) return fail('workflows_not_configured')
  try {
    return await workflowCatalog.list()
  } catch (error) {
    if (error instanceof CatalogError) return fail(code, { message: error.message, cause: error })
    throw error
  }
}

/** Lists the programs that come with the server for those who can do without: none where it has no engine, or cannot read them. */
export async function builtInsIfAny({ engine, workflowCatalog }: Dependencies): Promise<readonly BuiltIn[]> {
  try {
    return engine === null ? [] : await workflowCatalog.list()
  } catch (error) {
    if (error instanceof CatalogError) return []
    throw error
  }
}

export const presentEntry = ({ meta }: BuiltIn) => ({ object: 'workflow_program' as const, ...meta })

/** Shows a program that comes with the server as a row of the list of workflows. */
export function presentBuiltIn(
  { meta, source, at }: BuiltIn,
  { lastRun, runCount }: Pick<WorkflowRow, 'lastRun' | 'runCount'>,
): WorkflowRow {
  return {
    object: 'workflow',
    id: null,
    ...meta,
    source,
    version: null,
    author: null,
    retiredAt: null,
    createdAt: toTimestamp(at),
    updatedAt: toTimestamp(at),
    lastRun,
    runCount,
  }
}
