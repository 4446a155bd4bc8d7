import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Project, ProjectConfig, ProjectSummary } from '../../../../shared/api/projects.ts'
import { previewOfDescription } from '../rules.ts'
import type { ProjectRow } from '../store.ts'

export function presentProject(project: ProjectRow): Project {
  const { workspaceId, description, ownerUuid, visibility, repoUrl } = project
  return {
    ...presentProjectSummary(project),
    workspaceId,
    description,
    ownerUserId: ownerUuid,
    visibility,
    repoUrl,
    deletedAt: toTimestamp(project.deletedAt),
  }
}

export function presentProjectSummary(project: ProjectRow): ProjectSummary {
  return {
    object: 'project',
    id: project.id,
    name: project.name,
    descriptionPreview: previewOfDescription(project.description),
    status: project.status,
    prefix: project.prefix,
    leadAgentId: project.leadAgentUuid,
    createdAt: toTimestamp(project.createdAt),
    updatedAt: toTimestamp(project.updatedAt),
  }
}

export function presentConfig({ status, leadAgentUuid, repoUrl, prefix }: ProjectRow): ProjectConfig {
  return { status, leadAgentId: leadAgentUuid, repoUrl, prefix }
}
