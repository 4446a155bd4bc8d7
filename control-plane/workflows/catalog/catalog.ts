import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { maxSourceChars } from '../../../shared/api/workflow-words.ts'
import type { Log } from '../../process/log.ts'
import type { JobAnswer, JobOwner } from '../../process/worker-pool.ts'
import type { Checked } from '../program/check.ts'
import type { ProgramMeta } from '../program/meta.ts'
import { fixFailingChecks } from './fix-failing-checks.ts'
import { implementAndReview } from './implement-and-review.ts'

/** A program that comes with the server, or lies in the operator's folder. */
export interface BuiltIn {
  meta: ProgramMeta
  source: string
  /** The time since which the program is as it is (ms UTC). */
  at: number
}

/** The catalog cannot be read, or holds a program that cannot be run. */
export class CatalogError extends Error {}

export interface CatalogOptions {
  /** The operator's folder of programs (`*.js`); null: none. */
  folder: string | null
  /** Checks a program in a worker. */
  check: (source: string, owner: JobOwner) => Promise<JobAnswer<Checked>>
  log: Log
}

const own: readonly { source: string; at: number }[] = [implementAndReview, fixFailingChecks].map((source) => ({
  source,
  at: Date.UTC(2026, 10, 28),
}))

/** Programs of all workspaces. The folder is read each time; a program is checked once for each of its texts. */
export class WorkflowCatalog {
  private readonly options: CatalogOptions
  private readonly checked = new Map<string, ProgramMeta>()
  private last: readonly BuiltIn[] = []

  constructor(options: CatalogOptions) {
    this.options = options
  }

  /** Lists the programs by name. Fails with a CatalogError. */
  async list(): Promise<readonly BuiltIn[]> {
    const found = new Map<string, BuiltIn>()
    for (const { source, at } of own) {
      const meta = await this.ownMetaOf(source)
      found.set(meta.name, { meta, source, at })
    }
    for (const { source, at } of await this.files()) {
      const meta = await this.metaOf(source)
      found.set(meta.name, { meta, source, at })
    }
    this.last = [...found.values()].toSorted((a, b) => (a.meta.name < b.meta.name ? -1 : 1))
    return this.last
  }

  /** Returns the programs that the last reading found. */
  known(): readonly BuiltIn[] {
    return this.last
  }

  private async files(): Promise<{ source: string; at: number }[]> {
    const { folder } = this.options
    if (folder === null) return []
    try {
      const names = (await readdir(folder)).filter((name) => name.endsWith('.js')).toSorted()
      return await Promise.all(
        names.map(async (name) => {
          const path = join(folder, name)
          return { source: await readFile(path, 'utf8'), at: Math.trunc((await stat(path)).mtimeMs) }
        }),
      )
    } catch (error) {
      const reason = (error as Error).message
      this.options.log.warn(
        { folder },
        `the folder of workflow programs (SVC_WORKFLOW_CATALOG_DIR) cannot be read: ${reason}`,
      )
      throw new CatalogError('The folder of programs cannot be read.')
    }
  }

  /**
   * Reads the meta of a program of ours. These are small and known to be good, so they need no worker; the parser is loaded when it is
   * needed first.
   */
  private async ownMetaOf(source: string): Promise<ProgramMeta> {
    const known = this.checked.get(source)
    if (known !== undefined) return known
    const { checkProgram } = await import('../program/check.ts')
    const checked = checkProgram(source)
    if ('flaw' in checked) throw new Error(`a built-in program: ${checked.flaw.message}`)
    this.checked.set(source, checked.meta)
    return checked.meta
  }

  private async metaOf(source: string): Promise<ProgramMeta> {
    const known = this.checked.get(source)
    if (known !== undefined) return known
    const owner = { workspaceId: 'catalog', caller: 'catalog', bytes: source.length }
    const answer = source.length > maxSourceChars ? null : await this.options.check(source, owner)
    if (answer?.kind === 'done' && 'meta' in answer.value) {
      this.checked.set(source, answer.value.meta)
      return answer.value.meta
    }
    const flaw = answer?.kind === 'done' && 'flaw' in answer.value ? answer.value.flaw : null
    this.options.log.warn({ flaw, beginsWith: source.slice(0, 80) }, 'a program of the catalog cannot be run')
    throw new CatalogError('A program of the catalog cannot be run.')
  }
}
