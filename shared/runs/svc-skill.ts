/**
 * The skill `svc`, which is built in: how an agent in a run uses `svc`. A device has the text of its own release, as it has the `svc` of
 * its own release, so a run is told only whether it has the skill.
 */
const body = `# svc in a run

You work in a run of svc. The program svc is on the PATH and acts as you, the agent. In its commands "current" is the task of this run, or
the run itself, and "me" is you. Answers are JSON; an error names a code and says what to do. "svc help" lists all commands, and
"svc COMMAND --help" has the flags, an example and the codes of one. A long text is given as a file: --body-file, or - for standard input.
Where your tool calls need approval, one plain call about tasks, comments, questions or learnings needs none; calls that name files may.

## The task

    svc task get current --include description --include comments --include subtasks
    svc task history current
    svc comment list current
    svc comment add current "Half way: the tests pass, the docs are left."
    svc comment add current --body-file report.md
    svc task checklist add current "Write the test"
    svc task checklist update current chk_2mV6bN0xQeW4rT8y --done

Say what you did in a comment before you end, and move the task. From in_progress it goes to in_review, done, open or cancelled.

    svc task transition current --status done --comment "Merged."
    svc task transition current --status in_review

## Other tasks and agents

    svc task list --status open --assignee me
    svc task list --q "login page"
    svc agent list
    svc task create --title "Write the release notes" --assignee @writer --parent current --description-file notes.md
    svc task dependency add current MAI-3
    svc task assign current --assignee @reviewer

Giving a task to an agent wakes it. So does a comment on its task, and @handle in a comment. Look for a task that is there before you create one.
When you hand on the task of this run, the other agent begins once this run has ended. Do not wait for others in a loop: end the run. You are
woken when the last task that blocks yours is closed, when its last subtask is closed, and when somebody answers.

## What you need from a person

    svc question ask "Which region shall I deploy to?"
    svc question ask "Which colour?" --wait 60000
    svc question ask "Which region?" --option eu=Europe --option us
    svc question ask "I need a token to publish." --secret-name npm-token --provider npm --env NPM_TOKEN
    svc question get qst_1rT5nY9bJcQ3dH7s
    svc approval request --type deploy --description "Deploy build 17 to production"

A question and a request for approval end the run. Do first what does not depend on the answer, and write down where you are: the answer wakes you
in this session. With --wait the run goes on, and has the answer in answer.text when it comes in time. Ask for a secret only so; never ask
anybody to write one in a message, and never print one.

A tool call that needs approval is refused, and the run ends. When it was approved you are woken and may make exactly that call, once. Do not
look for a way around a refusal. A command that answers with a platform_change has done nothing yet: a person decides, and you may go on.

## Wiki

The wiki is what the workspace knows. Search it before you work out what somebody knew already.

    svc wiki search "roll back"
    svc wiki get how-we-deploy
    svc wiki get how-we-deploy --out page.md
    svc wiki update how-we-deploy --body-file page.md --base wrev_8cN3jH6wLzR1pX7s
    svc wiki create --title "How we deploy" --body-file page.md

--base is the revision whose text you changed. Where another one is current by now the text is refused: read the page again and make your change
in that. Cite with links where the citation belongs, not with numbers.

## Files

    svc file upload report.pdf --description "The report of May"
    svc file upload - --name log.txt
    svc file list --task current
    svc file read file_6kR2wB9xTnV4pL7c
    svc file download file_6kR2wB9xTnV4pL7c --output copy.pdf
    svc file replace file_6kR2wB9xTnV4pL7c report.pdf

An upload is attached to the task of the run. "file read" shows a text; "file download" brings the bytes.

## Learnings

    svc learning list --status accepted
    svc learning add --topic "Builds" --bullet "Run make clean first." --source https://example.com/builds --entity repo:web

Propose what will hold for the next run, too, one fact of at most 25 words in each --bullet, with the --source that shows it. A person reviews it.

## The end of the run

    svc run output --data '{"ok":true}'
    svc run output --file result.json

Record an output where the prompt asks for one. The last one counts.
`

const name = 'svc'
const description =
  'How to use svc in a run: read and move the task, comment, give work to other agents, ask people questions and for approval, use the wiki, files and learnings. Use it before the first svc command.'

export const svcSkill = {
  slug: name,
  name,
  description,
  body,
  /** The text of the skill's SKILL.md. */
  file: ['---', `name: ${name}`, `description: ${JSON.stringify(description)}`, '---', body].join('\n'),
} as const
