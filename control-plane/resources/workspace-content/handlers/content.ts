import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { viewerOfAgents } from '../../agents/rules.ts'
import { countAgents } from '../../agents/store.ts'
import { reviewWorkspaceBudget } from '../../approvals/steps/budget-hold.ts'
import { fileViewerOf } from '../../files/rules.ts'
import { countFiles } from '../../files/store.ts'
import { countLearnings } from '../../learnings/store.ts'
import { projectViewerOf } from '../../projects/rules.ts'
import { countProjects } from '../../projects/store.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'
import { countTasks } from '../../tasks/list-store.ts'
import { countPages } from '../../wiki/store.ts'
import { resumeWorkflows } from '../../workflows/steps/resume.ts'
import { countWorkflows } from '../../workflows/store.ts'
import type { WorkspaceContent, WorkspaceCounts } from '../../workspaces/content.ts'
import { WorkspaceExports } from './export.ts'

export function workspaceContent(): WorkspaceContent {
  const exports = new WorkspaceExports()
  return {
    count,
    write: (root, workspaceId, now) => exports.write(root, workspaceId, now),
    budgetChanged: reviewWorkspaceBudget,
    resumed: resumeWorkflows,
  }
}

async function count(db: Db, caller: Caller): Promise<WorkspaceCounts> {
  const { workspaceId } = caller
  const agents = await countAgents(db, workspaceId, viewerOfAgents(caller))
  const projects = await countProjects(db, workspaceId, projectViewerOf(caller))
  const tasks = await countTasks(db, workspaceId, projectViewerOf(caller))
  const workflows = await countWorkflows(db, workspaceId)
  const { count: files, bytes: fileBytes } = await countFiles(db, { workspaceId, visibleTo: fileViewerOf(caller) })
  const wikiPages = await countPages(db, { workspaceId })
  const learnings = await countLearnings(db, {
    workspaceId,
    ...withoutUndefined({ visibleTo: workViewerOf(caller) }),
  })
  return { agents, tasks, projects, workflows, files, fileBytes, wikiPages, learnings }
}
