// The rules of axe-core on a page, and whether it scrolls sideways.
import { readFileSync } from 'node:fs';

const source = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** Findings as lines: the rule, its element, and what to change. A page's policy allows no inline script, so axe runs in another world. */
export async function axe(tab) {
  const session = await tab.context.newCDPSession(tab.page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression, contextId: executionContextId, awaitPromise: true, returnByValue: true,
    });
    if (exceptionDetails) throw new Error(`axe: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  };
  await evaluate(source);
  const violations = await evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(
    ({ id, nodes }) => nodes.slice(0, 3).map((node) => id + ' ' + node.target.join(' ') + ': ' + node.failureSummary.replace(/\\s+/g, ' '))))`);
  await session.detach();
  return violations;
}

/** Pixels by which the page is wider than its window, with the widest elements. */
export function sideways(tab) {
  return tab.page.evaluate(() => {
    const over = document.documentElement.scrollWidth - window.innerWidth;
    if (over <= 0) return '';
    const wide = [...document.body.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1);
    const names = wide.slice(-4).map((one) => `${one.tagName.toLowerCase()}.${[...one.classList].join('.')}`);
    return `${over} px wider than the window: ${names.join(', ')}`;
  });
}
