import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import {
  insertBinding,
  listBindings,
  removeBinding,
  repositoryPattern,
  type RepoBinding,
} from '../resources/repos/binding-store.ts'
import { findWorkspaceBySlug } from '../resources/workspaces/store.ts'
import { OperatorError } from './people.ts'

// Bindings of the GitHub connection's repositories to workspaces that may reach them.

interface Named {
  /** Slug. */
  workspace: string
  /** `owner/name`, `owner/*` or `*`. */
  repository: string
}

export async function bindRepository(db: Db, world: World, named: Named): Promise<RepoBinding> {
  const binding = await read(db, named)
  await insertBinding(db, { ...binding, at: world.now() })
  return binding
}

export async function unbindRepository(db: Db, named: Named): Promise<RepoBinding & { removed: true }> {
  const binding = await read(db, named)
  if (!(await removeBinding(db, binding)))
    throw new OperatorError(`${binding.repository} is not bound to ${binding.workspace}.`)
  return { ...binding, removed: true }
}

export async function shownBindings(db: Db): Promise<{ bindings: RepoBinding[] }> {
  return { bindings: await listBindings(db) }
}

async function read(db: Db, { workspace: slug, repository }: Named): Promise<RepoBinding> {
  const workspace = await findWorkspaceBySlug(db, slug)
  if (workspace === null) throw new OperatorError(`There is no workspace ${slug}.`)
  const pattern = repositoryPattern.safeParse(repository)
  if (!pattern.success) throw new OperatorError(`${repository} names no repository: write owner/name, owner/* or *.`)
  return { workspaceId: workspace.id, workspace: workspace.slug, repository: pattern.data }
}
