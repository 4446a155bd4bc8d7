import { join } from 'node:path'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { skillFileText } from '../parts/skill-file.ts'
import type { GivenSkill } from '../parts/skills.ts'

/**
 * The skills as a plugin of this run's own, in which claude names them `svc:<name>`. Each SKILL.md is written anew with its name,
 * its description and its text alone: claude would take hooks and allowed tools from a skill's front matter, also from one that
 * changes while the run goes on, and run those hooks without asking (seen with 2.1.329).
 */
export function skillsPlugin(facts: SkillFacts): { args: string[]; files: HarnessLaunch['files'] } {
  if (facts.skills.length === 0) return { args: [], files: [] }
  return { args: [`--plugin-dir=${pluginIn(facts)}`], files: skillFiles(facts) }
}
export const skillName = (name: string): string => `${pluginName}:${name}`

type SkillFacts = Pick<LaunchFacts, 'skills' | 'runDir'>

const pluginName = 'svc'
const pluginIn = ({ runDir }: Pick<LaunchFacts, 'runDir'>): string => join(runDir, pluginName)

export const skillFiles = (facts: SkillFacts): HarnessLaunch['files'] =>
  facts.skills.map((skill) => ({
    path: join(pluginIn(facts), 'skills', skill.name, 'SKILL.md'),
    content: writtenAnew(skill),
  }))

/** claude calls the folder of the plugin the skill's base directory; the skill's files are elsewhere. */
function writtenAnew({ name, description, body, folder, hasFiles }: GivenSkill): string {
  const place = `The files of this skill are in ${folder}, which is meant wherever this text speaks of its base directory or names a file without a folder.`
  const text = body.replaceAll('${CLAUDE_SKILL_DIR}', () => folder)
  return skillFileText({ name, description, body: hasFiles ? `${place}\n\n${text}` : text })
}
