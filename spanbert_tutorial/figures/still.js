  var title = root.querySelector('svg > title').textContent;
  for (var node = root; node && node != document.body; node = node.parentElement) {
    var before = node.previousElementSibling;
    if (!before) continue;
    var still = before.matches('svg, img') ? before : before.querySelector('svg.diagram, img');
    var content = still && (still.src ? decodeURIComponent(still.src) : still.textContent);
    if (content && content.indexOf(title) >= 0) before.hidden = true;
    break;
  }
