import type { Stage } from '../../contract/stage.ts'

export const newLearning = {
  topic: 'Builds',
  bullets: [{ text: 'Run make clean before each build.', sources: ['https://example.com/builds'] }],
  entities: [{ type: 'repo', name: 'web' }],
}

/** A learning that the owner files, unless a token is given. */
export async function makeLearning(
  { server }: Pick<Stage, 'server'>,
  { token, ...body }: Record<string, unknown> & { token?: string } = {},
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  return server.ok('/learnings', { body: { ...newLearning, ...body }, ...(token === undefined ? {} : { token }) })
}
