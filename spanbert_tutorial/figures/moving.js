document.querySelectorAll('[data-moving]:not([data-ready])').forEach(function (root) {
  root.setAttribute('data-ready', '');
  var data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  var parts = root.querySelectorAll('[data-part]'), says = root.querySelector('[data-says]');
  var slider = root.querySelector('input'), buttons = root.querySelectorAll('button');
  var calm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  var now = data.first, timer = 0, player = null, label = '';
  function show(frame) {
    if (!(frame in data.says)) return;
    now = frame;
    data.parts.forEach(function (changes, i) {
      Object.keys(changes).forEach(function (name) {
        var value = changes[name].filter(function (change) { return change[0] <= frame; }).pop()[1];
        if (name == 'words') parts[i].textContent = value; else parts[i].setAttribute(name, value);
      });
    });
    says.textContent = data.says[frame];
    if (slider) {
      slider.value = frame;
      slider.setAttribute('aria-valuetext', data.marks[frame]);
      slider.nextElementSibling.textContent = data.marks[frame];
    }
  }
  function rest() {
    window.clearInterval(timer);
    if (player) player.textContent = label;
    player = null;
  }
  function tell(how) { says.setAttribute('aria-live', how); }
  buttons.forEach(function (button, i) {
    var stops = data.buttons[i].stops, plays = data.buttons[i].plays && !calm;
    button.hidden = calm && slider;
    button.addEventListener('click', function () {
      var paused = player == button;
      rest();
      if (paused) return tell('polite');
      if (now >= stops[stops.length - 1]) show(0);
      var stop = stops.filter(function (one) { return one > now; })[0];
      if (!plays) { tell('polite'); return show(stop); }
      player = button; label = button.textContent; button.textContent = 'Pause';
      timer = window.setInterval(function () {
        tell(now + 1 < stop ? 'off' : 'polite');
        show(now + 1);
        if (now >= stop) rest();
      }, data.pace);
    });
  });
  if (slider) slider.addEventListener('input', function () { rest(); tell('off'); show(Number(slider.value)); });
  root.frame = {show: function (frame) { rest(); show(frame); }, now: function () { return now; }};
  root.querySelector('[data-controls]').hidden = false;
  // a stored notebook shows the still picture right before; here it has done its work
  var title = root.querySelector('svg > title').textContent;
  for (var node = root; node && node != document.body; node = node.parentElement) {
    var before = node.previousElementSibling;
    if (!before) continue;
    var still = before.matches('svg, img') ? before : before.querySelector('svg.diagram, img');
    var content = still && (still.src ? decodeURIComponent(still.src) : still.textContent);
    if (content && content.indexOf(title) >= 0) before.hidden = true;
    break;
  }
});
