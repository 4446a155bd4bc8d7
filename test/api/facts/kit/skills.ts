import type { Stage } from '../../contract/stage.ts'

export const skillMd = (text = 'Write one line for each change.') =>
  `---\nname: release-notes\ndescription: Writes release notes.\nallowed-tools: Read, Bash(git log *)\n---\n\n${text}\n`

export const newBundle = (text?: string) => ({ files: [{ path: 'SKILL.md', content: skillMd(text) }] })

export const newSlug = (): string => `skill-${crypto.randomUUID().slice(0, 8)}`

/** A skill that the owner adds, unless a token is given. */
export async function makeSkill(
  { server }: Pick<Stage, 'server'>,
  { token, ...body }: Record<string, unknown> & { token?: string } = {},
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  const sent = { slug: newSlug(), name: 'Release notes', bundle: newBundle(), ...body }
  return server.ok('/skills', { body: sent, ...(token === undefined ? {} : { token }) })
}

/** A share link of a new skill. */
export async function makeShare(
  stage: Pick<Stage, 'server'>,
  { token, ...body }: { token?: string; expiresAt?: string } = {},
): Promise<{ skillId: string; shareId: string; shareToken: string }> {
  const by = token === undefined ? {} : { token }
  const { id: skillId } = await makeSkill(stage, by)
  const { id: shareId, token: shareToken } = await stage.server.ok(`/skills/${skillId}/share`, { body, ...by })
  return { skillId, shareId, shareToken }
}
